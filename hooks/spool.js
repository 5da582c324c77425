// From the gateway's transcripts to files in the spool. A drop is what one session has gained since its
// cursor; the cursor moves after the drop's rename. A crash between the two hands the same entries over
// twice, and Python drops what it has seen. Nothing here reads a message.
import { createHash, randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const PAGE_BYTES = 4_000_000;
const LARGEST_PAGE = 64 * 1024 * 1024; // the gateway hands out no more at once
const REBUILDING = { tries: 20, pauseMs: 250 }; // the transcript's projection, after a change of branch
const WINDOWS = 4; // transcripts kept in mind for one session; a reset may begin another
// After a `reset` (a steered turn is enough) the transcript is read from its start again. What is older than
// the newest entry handed over went with it; the hour is for clocks that were set back.
const OVERLAP_MS = 3_600_000;

/** `read` is the gateway's readSessionTranscriptVisibleMessageDelta; `home()` the state folder. */
export function spooler({ home, read, wake, warn, shared }) {
  const { busy, newest } = shared; // one capture of a session at a time, or two would write one cursor
  let installedAt;
  let lastMs = 0;

  /** Hand over what `who`'s session gained. Never rejects; false if something is left for the next time. */
  function capture(reason, who, messages) {
    const session = nameOf(who);
    const mine = (busy.get(session) ?? Promise.resolve()).then(async () => {
      try {
        await handOver(reason, who, messages);
        return true;
      } catch (err) {
        warn(`nothing lost, but not taken in yet: ${who.sessionKey}: ${err.message}`);
        return false;
      } finally {
        if (busy.get(session) === mine) busy.delete(session);
      }
    });
    busy.set(session, mine);
    return mine;
  }

  async function handOver(reason, who, messages) {
    const state = await cursorsOf(who);
    const { cursor: last, at = 0 } = state.windows[who.sessionId] ?? {};
    const since = Math.max(await bornAt(), at - OVERLAP_MS);
    const urgent = reason === "compaction" || reason === "reset";
    let dropped = false;
    try {
      for await (const { entries, cursor } of pages(who, last)) {
        const fresh = entries.filter((entry) => !(timeOf(entry) < since));
        if (fresh.length) await drop(reason, who, fresh, cursor);
        dropped ||= fresh.length > 0;
        await keep(who, state, { cursor, at: Math.max(at, ...fresh.map((entry) => timeOf(entry) || 0)) });
        note(who, fresh);
      }
    } catch (err) {
      if (err.code !== "ERR_MODULE_NOT_FOUND" && err.code !== "ERR_PACKAGE_PATH_NOT_EXPORTED") throw err;
      // A gateway without the cursor API: the event's own messages, all of them each time.
      await drop(reason, who, (messages ?? []).map((message) => ({ message })));
      dropped = true;
    }
    if (urgent && !dropped) await drop(reason, who, []); // the reason itself says: observe now
    if (urgent || dropped) wake();
  }

  async function* pages(who, cursor) {
    let maxBytes = PAGE_BYTES;
    let resets = 0;
    for (let tries = 0; ; ) {
      const { agentId, sessionKey, sessionId } = who;
      const page = await read({ agentId, sessionKey, sessionId, maxBytes, ...(cursor && { cursor }) });
      if (page.kind === "missing") return;
      if (page.kind === "unavailable") {
        if (++tries > REBUILDING.tries) throw new Error(`its transcript stays unavailable (${page.reason})`);
        await sleep(REBUILDING.pauseMs);
      } else if (page.kind === "reset") {
        // History was rewritten: from the start again. What was seen is known by its id.
        if (++resets > 2) throw new Error(`its transcript keeps changing (${page.reason})`);
        cursor = page.cursor;
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
    lastMs = Math.max(Date.now(), lastMs + 1); // names sort as they were made, two pages in one ms too
    const name = `${String(lastMs).padStart(15, "0")}-${randomUUID()}.json`;
    const { agentId, sessionKey, sessionId, workspaceDir, channel, accountId, senderId, trigger } = who;
    const ids = { agentId, sessionKey, sessionId, workspaceDir, channel, accountId, senderId, trigger };
    await put(join(home(), "spool"), name, { v: 1, reason, ...ids, cursor, entries });
  }

  async function keep(who, state, reached) {
    delete state.windows[who.sessionId]; // and in again, as the newest
    state.windows[who.sessionId] = reached;
    for (const old of Object.keys(state.windows).slice(0, -WINDOWS)) delete state.windows[old];
    await put(join(home(), "cursors"), `${nameOf(who)}.json`, state);
  }

  async function cursorsOf(who) {
    const { agentId, sessionKey } = who;
    const file = join(home(), "cursors", `${nameOf(who)}.json`);
    return { agentId, sessionKey, windows: (await json(file))?.windows ?? {} };
  }

  /** What was said before OMG came is for `omg import`. The installer writes when that was, else we do. */
  async function bornAt() {
    if (installedAt) return installedAt;
    const file = join(home(), "installed.json");
    const { at } = (await json(file)) ?? {};
    if (!at) await put(home(), "installed.json", { at: Date.now() });
    return (installedAt = at ?? Date.now());
  }

  /** Every session of the gateway, once, at its start: nothing depends on hooks that a crash swallows. */
  async function catchUp(sessions) {
    const since = await bornAt();
    for (const { updatedAt, ...who } of sessions) {
      if (updatedAt < since) continue;
      const { windows } = await cursorsOf(who);
      const earlier = Object.keys(windows).filter((id) => id !== who.sessionId);
      for (const sessionId of [...earlier, who.sessionId]) await capture("catchup", { ...who, sessionId });
    }
    const known = new Set(sessions.map((who) => `${nameOf(who)}.json`));
    for (const name of await readdir(join(home(), "cursors")).catch(() => [])) {
      const left = name.endsWith(".json") && !known.has(name);
      if (left) await rm(join(home(), "cursors", name), { force: true });
    }
  }

  /** The newest message of a user in this session, in the spool or not yet: a tool call's source. */
  async function userMessage(who) {
    const { windows } = await cursorsOf(who);
    let last = newest.get(nameOf(who));
    for await (const { entries } of pages(who, windows[who.sessionId]?.cursor)) {
      last = lastUser(entries) ?? last;
    }
    return last;
  }

  function note(who, entries) {
    const last = lastUser(entries);
    if (last) remember(newest, nameOf(who), last);
  }

  return { capture, catchUp, userMessage };
}

/** A map that forgets its oldest: sessions come and go, and a gateway lives for months. */
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
  const parts = Array.isArray(content) ? content.map((part) => part.text ?? "") : [content ?? ""];
  const { senderId, senderIsOwner } = sender;
  return { id: entry.entryId, text: parts.join("\n"), timestamp, provenance, senderId, senderIsOwner };
}

/** Whole or not at all, and on the disk before the name is there. */
async function put(folder, name, value) {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const tmp = join(folder, `.${name}.${randomUUID()}`);
  try {
    await writeFile(tmp, JSON.stringify(value), { mode: 0o600, flush: true });
    await rename(tmp, join(folder, name));
  } catch (err) {
    await rm(tmp, { force: true }).catch(() => {});
    throw err;
  }
}

async function json(file) {
  try {
    return JSON.parse(await readFile(file, "utf8"));
  } catch (err) {
    if (err.code === "ENOENT" || err instanceof SyntaxError) return undefined;
    throw err;
  }
}
