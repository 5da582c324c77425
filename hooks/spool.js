// Writes new entries of the gateway's transcripts into the spool. A drop holds what one session gained since its
// cursor; the cursor moves after the drop is renamed into place. After a crash in between, the same entries come twice,
// and the daemon ignores entries that it knows. Only `lastUser` reads the content of a message.
import { createHash, randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const PAGE_BYTES = 4_000_000;
const LARGEST_PAGE = 64 * 1024 * 1024; // bytes; the gateway hands out no more at once
const TRIES = 20, REBUILDING_MS = 250; // while the gateway rebuilds its view of the transcript, after a change of branch
const WINDOWS = 4; // transcripts of one session with a cursor; a reset may begin a new transcript
// After a `reset` (a steered turn is enough) the transcript is read from its start again. Entries older than the newest
// entry in the spool were already handed over; the hour allows for clocks that were set back.
const OVERLAP_MS = 3_600_000;
const NO_CURSORS = ["ERR_MODULE_NOT_FOUND", "ERR_PACKAGE_PATH_NOT_EXPORTED"]; // an older gateway

/** `read` is the gateway's readSessionTranscriptVisibleMessageDelta; `home()` is OMG's home. */
export function spooler({ home, read, warn, shared }) {
  const { busy, newest } = shared; // one capture of a session at a time, because two captures would write the same cursor
  let installedAt;
  let lastMs = 0;

  /** Write the session's new entries into the spool. After a failure, the next call writes them. Never rejects. */
  function capture(reason, who, messages) {
    const session = nameOf(who);
    const mine = (busy.get(session) ?? Promise.resolve())
      .then(() => handOver(reason, who, messages))
      .catch((err) => warn(`nothing lost, but not taken in yet: ${who.sessionKey}: ${err.message}`))
      .finally(() => busy.get(session) === mine && busy.delete(session));
    busy.set(session, mine);
    return mine;
  }

  async function handOver(reason, who, messages) {
    const windows = await windowsOf(who);
    const { cursor: last, at = 0 } = windows[who.sessionId] ?? {};
    const since = Math.max(await bornAt(), at - OVERLAP_MS);
    let silent = reason === "compaction" || reason === "reset"; // these write a drop even without entries
    try {
      for await (const { entries, cursor } of pages(who, last)) {
        const fresh = entries.filter((entry) => !(timeOf(entry) < since));
        if (fresh.length) await drop(reason, who, fresh, cursor);
        silent &&= !fresh.length;
        await keep(who, windows, { cursor, at: Math.max(at, ...fresh.map((entry) => timeOf(entry) || 0)) });
        const said = lastUser(fresh);
        if (said) remember(newest, nameOf(who), said);
      }
    } catch (err) {
      if (!NO_CURSORS.includes(err.code)) throw err;
      silent = false; // an older gateway has no cursors: hand over all messages of the event, each time
      await drop(reason, who, (messages ?? []).map((message) => ({ message })));
    }
    if (silent) await drop(reason, who, []);
  }

  async function* pages({ agentId, sessionKey, sessionId }, cursor) {
    for (let maxBytes = PAGE_BYTES, tries = 0; ; ) {
      const page = await read({ agentId, sessionKey, sessionId, maxBytes, ...(cursor && { cursor }) });
      if (page.kind === "missing") return;
      if (page.kind !== "page" && ++tries > TRIES)
        throw new Error(`its transcript stays ${page.kind} (${page.reason})`);
      if (page.kind === "unavailable") {
        await sleep(REBUILDING_MS);
      } else if (page.kind === "reset") {
        cursor = page.cursor; // the history was rewritten: read it again; the daemon recognizes known entries by their ids
      } else if (page.requiredBytes) {
        if (page.requiredBytes > LARGEST_PAGE) throw new Error(`one entry has ${page.requiredBytes} bytes`);
        maxBytes = page.requiredBytes;
      } else {
        if (page.cursor !== cursor) yield page;
        if (!page.hasMore) return;
        cursor = page.cursor;
        maxBytes = PAGE_BYTES;
      }
    }
  }

  async function drop(reason, who, entries, cursor) {
    lastMs = Math.max(Date.now(), lastMs + 1); // names sort by time, even for two pages in one ms
    const name = `${String(lastMs).padStart(15, "0")}-${randomUUID()}.json`;
    await put(join(home(), "spool"), name, { v: 1, reason, ...who, cursor, entries });
  }

  async function keep(who, windows, reached) {
    delete windows[who.sessionId]; // the next line adds it again, as the newest
    windows[who.sessionId] = reached;
    for (const old of Object.keys(windows).slice(0, -WINDOWS)) delete windows[old];
    const { agentId, sessionKey } = who;
    await put(join(home(), "cursors"), `${nameOf(who)}.json`, { agentId, sessionKey, windows });
  }

  const windowsOf = async (who) => (await json(join(home(), "cursors", `${nameOf(who)}.json`)))?.windows ?? {};

  /** When OMG was installed, in ms. Older messages need `omg import`. If the installer wrote no time, it is now. */
  async function bornAt() {
    installedAt ??= (await json(join(home(), "installed.json")))?.at;
    if (!installedAt) await put(home(), "installed.json", { at: (installedAt = Date.now()) });
    return installedAt;
  }

  /** Capture every session once, when the gateway starts, because a crash may have prevented hooks. */
  async function catchUp(sessions) {
    const since = await bornAt();
    for (const { updatedAt, ...who } of sessions) {
      if (updatedAt < since) continue;
      const earlier = Object.keys(await windowsOf(who)).filter((id) => id !== who.sessionId);
      for (const sessionId of [...earlier, who.sessionId]) await capture("catchup", { ...who, sessionId });
    }
    const live = new Set(sessions.map((who) => `${nameOf(who)}.json`));
    const names = await readdir(join(home(), "cursors")).catch(() => []);
    const gone = names.filter((name) => name.endsWith(".json") && !live.has(name));
    for (const name of gone) await rm(join(home(), "cursors", name), { force: true });
  }

  /** The newest user message of the session, in the spool or not. A tool call cites this message as its source. */
  async function userMessage(who) {
    let last = newest.get(nameOf(who));
    const { cursor } = (await windowsOf(who))[who.sessionId] ?? {};
    for await (const { entries } of pages(who, cursor)) last = lastUser(entries) ?? last;
    return last;
  }

  return { capture, catchUp, userMessage };
}

/** Set `key` in `map`. Above 500 keys the oldest is removed, because a gateway runs for months. */
export function remember(map, key, value) {
  map.delete(key);
  map.set(key, value);
  if (map.size > 500) map.delete(map.keys().next().value);
}

const nameOf = ({ agentId, sessionKey }) =>
  createHash("sha256").update(`${agentId}\n${sessionKey}`).digest("hex").slice(0, 32);

const timeOf = ({ createdAt, message }) => (createdAt ? Date.parse(createdAt) : message?.timestamp);

function lastUser(entries) {
  const entry = entries.findLast(({ message }) => message?.role === "user");
  if (!entry) return;
  const { content, timestamp, provenance, __openclaw: sender = {} } = entry.message;
  const parts = [content].flat().map((part) => (typeof part === "string" ? part : (part?.text ?? "")));
  const { senderId, senderIsOwner } = sender;
  return { id: entry.entryId, text: parts.join("\n"), timestamp, provenance, senderId, senderIsOwner };
}

/** Write a whole file or none: the data is on the disk before the file's name appears. */
async function put(folder, name, value) {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const tmp = join(folder, `.${name}.${randomUUID()}`);
  try {
    await writeFile(tmp, JSON.stringify(value), { mode: 0o600, flush: true });
    await rename(tmp, join(folder, name));
  } finally {
    await rm(tmp, { force: true }).catch(() => {});
  }
}

/** The value in a JSON file; undefined if the file is missing or is not JSON. */
async function json(file) {
  try {
    return JSON.parse(await readFile(file, "utf8"));
  } catch (err) {
    if (err.code === "ENOENT" || err instanceof SyntaxError) return undefined;
    throw err;
  }
}
