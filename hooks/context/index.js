// OMG as the gateway's context engine. It is a separate plugin, because a gateway has a slot for one engine only. The
// engine asks the daemon which messages leave the context and which text replaces them (omg/context.py). It never
// throws and never makes a context longer. The gateway waits for `assemble` without a limit, so the engine keeps its
// own deadline; only if the daemon asks (`wait_ms`), it waits once for notes. In doubt it returns the same messages.
import { ask, fleetOf, forgottenMark, homeOf } from "./daemon.js";

const DEADLINE_MS = 1_500; // a long context has a megabyte; an answer usually takes about 10 ms
const LONGEST_WAIT_MS = 20_000; // for notes, even if the daemon asks for more (daemon.py)
const QUIET_MS = 5_000; // how long the daemon is not asked after a missed deadline
const SESSIONS = 500; // sessions whose last cut is kept

// The state that the plugin `omg` shares (hooks/index.js). It is global, because the gateway loads files several times.
const omg = () => globalThis[Symbol.for("omg.openclaw.1")];
const shared = (globalThis[Symbol.for("omg.openclaw.context.1")] ??= { last: new Map(), quietUntil: 0 });

export default {
  id: "omg-context",
  name: "Observational Memory Graph: context engine",
  description: "What OMG has observed leaves a long context, and its notes take its place.",

  register(api) {
    const home = () => homeOf(api.pluginConfig?.home, api);
    const warn = (message) => api.logger.warn(`omg-context: ${message}`);
    api.registerContextEngine("omg-context", () => engine({ home, warn }));
  },
};

export function engine({ home, warn, deadlineMs = DEADLINE_MS }) {
  return {
    info: {
      id: "omg-context",
      name: "Observational Memory Graph",
      version: "0.1.0",
      ownsCompaction: false,
      transcriptSemantics: {
        currentTurnFence: "before-current-turn-entry-v1",
        turnAdvancementIdempotency: "atomic-idempotent-v1",
      },
    },

    ingest: async () => ({ ingested: false }), // the gateway calls `commitTurn` instead

    /**
     * Read the transcript after an accepted turn, as the plugin does at the end of a turn (hooks/spool.js). Both use the
     * same cursor, so no message comes twice; after a failure the next call reads the rest. This must not throw, because
     * the gateway would then assemble the next context without us.
     */
    async commitTurn({ sessionKey, sessionId, sessionTarget, admission, messages }) {
      const agentId = sessionTarget?.agentId ?? admission?.agentId;
      await omg()?.capture?.({ agentId, sessionKey, sessionId }, messages);
      return { status: "committed" };
    },

    async assemble({ sessionKey, messages, tokenBudget }) {
      const untouched = { messages, estimatedTokens: 0 }; // 0 as in the gateway's own engine: the gateway counts
      try {
        const said = isMadeUp(messages) ? messages.slice(1) : messages;
        const decided = await decide({ sessionKey, messages: said, tokenBudget });
        if (!decided) return untouched;
        const begun = isMadeUp([messages[0], decided[0]]) ? [messages[0], ...decided] : decided;
        return { messages: begun, estimatedTokens: 0 };
      } catch (err) {
        warn(`the context stays as it is: ${err?.message}`);
        return untouched;
      }
    },

    /** Calls the gateway's own compaction, except if only the transcript is too large and our notes replace its older part. */
    async compact(params) {
      const bySize = params.runtimeContext?.preflightCompactionTrigger === "transcript_bytes";
      if (bySize && shared.last.get(params.sessionKey)?.text)
        return { ok: true, compacted: false, reason: "below threshold: omg-context shows notes in place of what is older" };
      const { delegateCompactionToRuntime } = await import("openclaw/plugin-sdk/core");
      return delegateCompactionToRuntime(params);
    },

    dispose: async () => {},
  };

  async function decide({ sessionKey, messages, tokenBudget }) {
    if (!sessionKey || !messages?.length) return;
    if (Date.now() < shared.quietUntil) return lastCut(sessionKey, messages);
    const { channel, accountId, senderId, runId, missed } = omg()?.turns.get(sessionKey) ?? {};
    const said = messages.findLast(({ role }) => role === "user")?.__openclaw;
    const senderIsOwner = said?.senderIsOwner ?? omg()?.speakers?.get(sessionKey)?.senderIsOwner;
    const who = { sessionKey, channel, accountId, senderId, senderIsOwner, senderIdentity: said?.senderIdentity, runId, missed: missed && runId };
    const before = new Set(shared.last.get(sessionKey)?.places);
    const shown = messages.map((message) => (before.has(placeOf(message)) ? outline : lean)(message));
    const body = { ...who, tokenBudget, messages: shown };
    const forgotten = await forgottenMark(home());
    let answer;
    try {
      answer = await ask(home(), "/context/assemble", body, deadlineMs, undefined, await fleetOf(home()));
      const waitMs = Math.min(answer.wait_ms, LONGEST_WAIT_MS);
      if (waitMs > 0) // [context] block_after: the one wait for memory
        answer = await ask(home(), "/context/assemble", { ...body, waits: true }, waitMs + deadlineMs);
    } catch (err) {
      if (err.code === "ETIMEDOUT") shared.quietUntil = Date.now() + QUIET_MS;
      warn(`the daemon did not say what to cut: ${err.message}`);
      return lastCut(sessionKey, messages);
    }
    const { text, cut = [], served = {}, told } = answer;
    shared.last.delete(sessionKey);
    if (typeof text !== "string" || !text || !cut.length || !cut.every((i) => Number.isInteger(i) && i in messages)) return;
    const again = new Map(Object.entries(served).map(([i, notes]) => [Number(i), notes]));
    const place = (i) => placeOf(messages[i]);
    const byPlace = new Map([...again].map(([i, notes]) => [place(i), notes]));
    shared.last.set(sessionKey, { text, places: cut.map(place), again: byPlace, told, forgotten });
    if (shared.last.size > SESSIONS) shared.last.delete(shared.last.keys().next().value);
    return replaced(messages, new Set(cut), text, again);
  }

  /**
   * Repeat the last cut while the daemon is away, because the whole transcript may no longer fit the model's window.
   * Returns undefined if something was forgotten since, or if a message of the last cut is missing (messages older than
   * all that the gateway hands over may be missing). Messages from before the last cut are cut, too, if `text` covers them.
   */
  async function lastCut(sessionKey, messages) {
    const { text, places, again, told, forgotten } = shared.last.get(sessionKey) ?? {};
    if (!text || forgotten !== (await forgottenMark(home()))) return;
    const wanted = new Set(places);
    const found = messages.keys().filter((i) => wanted.has(placeOf(messages[i]))).toArray();
    const since = messages.reduce((least, { timestamp }) => Math.min(least, timestamp), Infinity); // clocks are set back
    const handed = places.filter((place) => Number(place.split(" ")[1]) >= since);
    if (!found.length || found.length !== handed.length) return;
    const older = messages.slice(0, found[0]);
    const covered = older.every(({ timestamp }) => told?.[0] < timestamp && timestamp < told[1]);
    const notes = messages.keys().map((i) => [i, again.get(placeOf(messages[i]))]);
    return replaced(messages, new Set([...(covered ? older.keys() : []), ...found]), text, new Map(notes));
  }
}

/**
 * `messages` without the messages in `cut`: `text` replaces the first of these. Notes in `again` are put before the
 * message that they were served with. Returns undefined if the result is not shorter.
 */
function replaced(messages, cut, text, again) {
  const first = Math.min(...cut);
  const { timestamp } = messages[Math.max(...cut)];
  const made = messages.flatMap((message, i) => {
    if (i === first) return [{ role: "user", content: text, timestamp }];
    if (cut.has(i)) return [];
    const notes = message.role === "user" && again.get(i);
    return [typeof notes === "string" && notes ? { ...message, content: behind(notes, message.content) } : message];
  });
  const shorter = JSON.stringify(made).length < JSON.stringify(messages).length;
  return shorter && !cut.has(messages.length - 1) ? made : undefined;
}

/** `content` with `notes` before it, in the form in which the gateway puts a hook's prependContext before a prompt. */
function behind(notes, content) {
  if (!Array.isArray(content)) return `${notes}\n\n${content}`;
  const first = content.findIndex((part) => part?.type === "text");
  return content.map((part, i) => (i === first ? { ...part, text: `${notes}\n\n${part.text}` } : part));
}

/**
 * Whether the gateway made up the first message. It does so before an answer whose question it no longer hands over
 * (`sanitizeGoogleAssistantFirstOrdering`). The time of such a message differs in each request.
 */
const isMadeUp = ([first, second]) => first?.content === "(session bootstrap)" && second?.role === "assistant";

/** A string that identifies a message. Time alone is not enough: channels with whole seconds can begin two runs at once. */
const placeOf = (message) => `${message?.role} ${message?.timestamp} ${message?.idempotencyKey ?? ""}`;

/** A message without the parts that the daemon does not read: images, sounds, thoughts, costs, signatures. */
function lean({ role, content, timestamp, idempotencyKey, provenance, toolCallId, toolName, summary, model, __openclaw }) {
  const parts = Array.isArray(content) ? content.filter((part) => part?.type !== "thinking").map(leanPart) : content;
  return { role, content: parts, timestamp, idempotencyKey, provenance, toolCallId, toolName, summary, model, __openclaw };
}

function leanPart(part) {
  if (!part || typeof part !== "object") return part;
  const { data, source, ...rest } = part;
  return rest;
}

/** The outline of a message that was already cut: only what shows where its turn ends, because transcripts are large. */
function outline(message) {
  const { content, ...rest } = lean(message);
  const calls = Array.isArray(content) ? content.filter((part) => part?.type === "toolCall" || part?.type === "tool_use") : [];
  return { ...rest, content: calls.map(({ type, id }) => ({ type, id })), chars: JSON.stringify(content ?? "").length };
}
