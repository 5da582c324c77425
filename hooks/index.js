// All of OMG that runs inside the gateway. It moves bytes and decides nothing: what to remember and
// what to inject is Python's business (omg/daemon/). Its one rule: a turn never fails and never
// waits because of us. So every promise ends in a catch, and every question has a deadline.
//
//   before_prompt_build                        ask the daemon; its answer is the hook's result
//   agent_end, before_compaction, before_reset what the transcript gained goes into the spool (spool.js)
//   a service                                  one daemon while the gateway lives (daemon.js)
//   tools, /omg, memory_search, omg.status     questions passed on, with whom they come from
import { homedir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ask, fleetOf, keeper } from "./daemon.js";
import { json, remember, spooler } from "./spool.js";
import words from "./words.json" with { type: "json" }; // what a model is told of us before it asks

const DEADLINE_MS = 150; // a turn waits this long for memory, and no longer
const AHEAD_MS = 40; // and this long before its history shrinks; the transcript keeps it all anyway
const COMMIT_MS = 2_000; // a turn that is committed to the context engine may wait so long; the capture goes on
const CAPTURE_MS = 20_000; // nobody waits for agent_end; the gateway's own limit is 30 s
const UNBEGUN_MS = 15_000; // from a message to its prompt: seconds. One that is stopped before has no end that a hook tells
const TOOL_MS = 10_000;
const SEARCH_MS = 2_000;
const SERVED_FOR_MS = 15 * 60_000; // with the daemon away, the last `system` part is good for this long
const QUIET_MS = 1_000; // after a missed deadline nobody is asked: a prompt built twice waits once
const LONGEST_PROMPT = 100_000; // characters; what memory a prompt needs shows in less
const LONG_TEXT = 24_000, HEAD = 16_000, TAIL = 4_000; // characters of a tool result

// What the gateway says of who speaks: may they administer it, and which of its own profiles are they?
const VOUCHED = ["senderIsOwner", "senderIdentity"];
// Who is served: the same in each of these, or somebody (or something) else.
const ASKER = ["agentId", "sessionKey", "channel", "accountId", "senderId", "trigger", "inputProvenance", ...VOUCHED];

// The gateway loads this file more than once into one process: an instance for services, channels and
// commands, another for the agents' runs. What they must know of each other lies here.
const shared = (globalThis[Symbol.for("omg.openclaw.1")] ??= {
  served: new Map(), // who was served -> the last `system` part; stale memory beats none
  turns: new Map(), // session -> who spoke last there, and in which run
  speakers: new Map(), // session -> what the gateway says of who speaks there, while a run lasts
  began: new Map(), // run -> what it says of whose message began it
  unbegun: new Map(), // session -> the timer of a message that no prompt was built for yet
  busy: new Map(), // session -> its capture under way
  newest: new Map(), // session -> its newest user message that is in the spool
  slowest: {}, // hook -> the longest it took, in ms, for omg.status
  quietUntil: 0,
});

export default {
  id: "omg",
  name: "Observational Memory Graph",
  description: "Remembers conversations as a graph of markdown notes that a person can read and correct.",

  register(api) {
    // Registration only: the gateway runs this several times, and the openclaw command line does too.
    const { home: configured, command = ["omg"], trimToolResults = false, url, token } = api.pluginConfig ?? {};
    const home = () => homeOf(configured, api);
    const warn = (message) => api.logger.warn(`omg: ${message}`);
    const fleet = () => fleetOf(home(), { url, token });
    const asked = async (path, body, deadlineMs, signal) => ask(home(), path, body, deadlineMs, signal, await fleet());
    const daemon = keeper({ home, command, complete: completer(api), logger: api.logger, fleet });
    const spool = spooler({ home, warn, shared, read: readTranscript });
    shared.capture = (from, messages) => capture("turn", COMMIT_MS)({ messages }, from); // for context/
    const { served, turns, speakers, began, unbegun, slowest } = shared;

    function on(hook, handler) {
      slowest[hook] ??= 0;
      api.on(hook, async (event, ctx) => {
        const since = performance.now();
        try {
          return await handler(event, ctx ?? {});
        } catch (err) {
          warn(`${hook}: ${err?.message}`);
        } finally {
          slowest[hook] = Math.max(slowest[hook], Math.round(performance.now() - since));
        }
      });
    }

    on("before_prompt_build", async (event, ctx) => {
      const turn = { ...who(ctx), ...vouched(ctx) };
      if (!turn.sessionKey) return; // no session, no identity: nobody to remember for
      clearTimeout(unbegun.get(turn.sessionKey)); // agent_end will come
      remember(turns, turn.sessionKey, turn);
      const key = JSON.stringify(picked(turn, ASKER));
      const asking = Date.now();
      const forgotten = await forgottenMark(home());
      if (asking >= shared.quietUntil) {
        try {
          const prompt = (event.currentUserMessage ?? event.prompt)?.slice(0, LONGEST_PROMPT);
          const { appendSystemContext, prependContext } = await asked("/inject", { ...turn, prompt }, DEADLINE_MS);
          remember(served, key, { appendSystemContext, at: asking, forgotten });
          return appendSystemContext || prependContext ? { appendSystemContext, prependContext } : undefined;
        } catch (err) {
          turn.missed = true; // what the daemon would have served stands in no request
          if (err.code === "ETIMEDOUT") shared.quietUntil = Date.now() + QUIET_MS;
        }
      }
      if (await fleet()) return; // what was forgotten there meanwhile cannot be known here
      const now = await forgottenMark(home());
      for (const [whose, { forgotten }] of served) if (forgotten !== now) served.delete(whose);
      const { appendSystemContext, at } = served.get(key) ?? {};
      if (appendSystemContext && Date.now() - at < SERVED_FOR_MS) return { appendSystemContext };
    });

    const capture = (reason, deadlineMs) => async (event, ctx) => {
      const turn = { ...turns.get(ctx.sessionKey), ...who(ctx) };
      if (!turn.sessionKey || !turn.sessionId) return;
      const late = sleep(deadlineMs, undefined, { ref: false }); // the capture goes on without us
      await Promise.race([spool.capture(reason, turn, event.messages), late]);
    };
    const atEnd = capture("turn", CAPTURE_MS);
    on("agent_end", (event, ctx) => {
      speakers.delete(ctx.sessionKey); // the next who speaks there may be another
      clearTimeout(unbegun.get(ctx.sessionKey)); // in the HTTP API the message is stored behind its prompt
      return atEnd(event, ctx);
    });
    on("before_compaction", capture("compaction", AHEAD_MS));
    on("before_reset", capture("reset", AHEAD_MS));
    // Compaction and reset events know the session only; who speaks there is known from here.
    on("message_received", (event, { sessionKey, channelId: channel, accountId, senderId }) => {
      if (sessionKey) remember(turns, sessionKey, { ...turns.get(sessionKey), channel, accountId, senderId });
    });
    // Of whom it knows, the gateway says who it is when it stores the message that begins a run: before the prompt is
    // built, except in its HTTP API. Synchronous, by contract, and nothing is changed.
    api.on("before_message_write", ({ message }, ctx) => {
      if (message?.role === "user" && ctx?.sessionKey) expectPrompt(ctx);
      const [run, isBeginning] = String(message?.idempotencyKey).split(/:(user)$/);
      if (isBeginning && message.role === "user") remember(began, run, picked(message.__openclaw ?? {}, VOUCHED));
    });
    /** Take a message in by itself when no prompt was built for it: /stop came first, and no agent_end will. */
    function expectPrompt({ agentId, sessionKey }) {
      clearTimeout(unbegun.get(sessionKey));
      const late = async () => {
        unbegun.delete(sessionKey);
        const session = (await sessionsOf(api)).find((s) => s.agentId === agentId && s.sessionKey === sessionKey);
        if (session) await capture("unanswered", CAPTURE_MS)({}, session);
      };
      const failed = (err) => warn(`an unanswered message waits for the next turn: ${err?.message}`);
      remember(unbegun, sessionKey, setTimeout(() => late().catch(failed), UNBEGUN_MS).unref());
    }
    /** What the gateway says of who speaks in a run, or in the last that a session had. */
    const vouched = ({ sessionKey, runId = turns.get(sessionKey)?.runId }) =>
      ({ ...began.get(runId), ...speakers.get(sessionKey) });
    if (trimToolResults) api.on("tool_result_persist", ({ message }) => trimmed(message)); // synchronous, by contract

    api.registerService({
      id: "omg-daemon",
      start() {
        daemon.start();
        // Not awaited: a service has five seconds to start, and there may be many sessions.
        sessionsOf(api).then(spool.catchUp).catch((err) => warn(`could not catch up: ${err?.message}`));
      },
      stop: () => daemon.stop(),
    });

    for (const tool of words.tools) {
      const execute = (context) => async (id, params, signal) => {
        try {
          const question = { name: tool.name, params, context: await asking(context) };
          const { text, details } = await asked("/tool", question, TOOL_MS, signal);
          return { content: [{ type: "text", text }], details };
        } catch (err) {
          warn(`${tool.name}: ${err?.message}`);
          const text = "The memory does not answer at the moment. Nothing was changed.";
          return { content: [{ type: "text", text }], details: {} };
        }
      };
      // Made for each run, before its prompt is built: this is where the gateway says whether its owner speaks.
      api.registerTool((context) => {
        if (context.sessionKey) remember(speakers, context.sessionKey, picked(context, ["senderIsOwner"]));
        return { ...tool, execute: execute(context) };
      }, { name: tool.name });
    }

    /** Who asks through a tool, as the gateway vouches for it, and the message of theirs that it is about. */
    async function asking(context) {
      const { messageChannel: channel, agentAccountId: accountId, requesterSenderId: senderId } = context;
      const { senderIdentity } = vouched(context);
      const asker = picked({ ...context, channel, accountId, senderId, senderIdentity }, ASKER, "sessionId");
      const turn = picked(turns.get(context.sessionKey) ?? {}, ["runId", "trigger", "inputProvenance"]);
      const unread = (err) => warn(`no source for a tool call: ${err?.message}`);
      return { ...asker, ...turn, userMessage: await spool.userMessage(asker).catch(unread) };
    }

    api.registerCommand({
      name: "omg",
      description: "What is remembered: /omg status, /omg search <words>, /omg forget <words>",
      acceptsArgs: true,
      requireAuth: true,
      async handler({ args = "", ...from }) {
        const context = picked(from, ASKER, "sessionId", "isAuthorizedSender", "gatewayClientScopes");
        const away = (err) => ({ text: `OMG does not answer (${err.message}). What is said is kept meanwhile.` });
        const { text } = await asked("/command", { args, context }, TOOL_MS).catch(away);
        return { text };
      },
    });

    api.registerGatewayMethod("omg.status", async ({ respond }) => {
      const status = await asked("/status", {}, SEARCH_MS).catch((err) => ({ error: err.message }));
      respond(true, { home: home(), command, keeper: daemon.report(), slowestMs: slowest, daemon: status });
    }, { scope: "operator.read" });

    api.registerMemoryPromptSupplement(() => words.guidance);

    const corpus = (op, { agentId, agentSessionKey: sessionKey, sandboxed, ...params }) =>
      asked("/corpus", { op, params, context: { agentId, sessionKey, sandboxed, ...vouched({ sessionKey }) } }, SEARCH_MS).catch(() => ({}));
    api.registerMemoryCorpusSupplement({
      search: async (params) => (await corpus("search", params)).results ?? [],
      get: async (params) => (await corpus("get", params)).result ?? null,
    });
  },
};

/** What tells the daemon whose turn this is. Compaction knows the channel only as `messageProvider`. */
function who({ messageProvider: channel, ...ctx }) {
  return picked({ channel, ...ctx }, ASKER, "sessionId", "runId", "chatId", "workspaceDir", "modelId");
}

/** The given keys of `from`, in their order, where it has them. */
function picked(from, keys, ...more) {
  return Object.fromEntries([...keys, ...more].filter((k) => from[k] !== undefined).map((k) => [k, from[k]]));
}

/**
 * What changes whenever something is forgotten here (forget/homefiles.py): what was served before may quote it. Not
 * compared by its time, for clocks are set back; NaN, which is like nothing, if it cannot be read.
 */
async function forgottenMark(home) {
  return (await json(join(home, "forgotten.json")).catch(() => ({ at: NaN })))?.at ?? 0;
}

function homeOf(configured, api) {
  const given = configured || process.env.OMG_HOME;
  return given ? given.replace(/^~(?=\/|$)/, homedir()) : join(api.runtime.state.resolveStateDir(), "omg");
}

// What the gateway's SDK has is imported when it is needed: an older gateway lacks some of it.
async function readTranscript(params) {
  const transcripts = await import("openclaw/plugin-sdk/session-transcript-runtime");
  return transcripts.readSessionTranscriptVisibleMessageDelta(params);
}

async function agentsOf(api) {
  const { listAgentIds } = await import("openclaw/plugin-sdk/agent-scope-runtime");
  return listAgentIds(api.runtime.config.current());
}

async function sessionsOf(api) {
  const { listSessionEntries } = api.runtime.agent.session;
  return (await agentsOf(api)).flatMap((agentId) =>
    listSessionEntries({ agentId }).map(({ sessionKey, entry: { sessionId, updatedAt } }) => {
      return { agentId, sessionKey, sessionId, updatedAt };
    }),
  );
}

/** The agent's own model, and no other's: with several agents, naming one needs the owner's leave. */
function completer(api) {
  return (asked, signal) => outside(async () => {
    const { agentId, ...question } = asked;
    const several = agentId && (await agentsOf(api)).length > 1;
    return api.runtime.llm.complete({ ...question, ...(several && { agentId }), signal });
  });
}

/**
 * A service runs in the async context of the plugin operation that started it: an install, a reload, the gateway's
 * own start. With the next one its inventory retires, and no model is lent to it any more. The gateway keeps a
 * context that belongs to none, for work of its own that goes on; an older one without it asks for a restart.
 */
function outside(run) {
  const detached = globalThis[Symbol.for("openclaw.detachedAsyncContext")];
  return detached ? detached.runInAsyncScope(run) : run();
}

/** A tool result's long texts by their beginning and end: the same text in, the same text out. */
function trimmed(message) {
  if (!Array.isArray(message?.content)) return;
  const long = (part) => part?.type === "text" && part.text?.length > LONG_TEXT;
  if (!message.content.some(long)) return;
  const content = message.content.map((part) => {
    if (!long(part)) return part;
    const seam = `[… ${part.text.length - HEAD - TAIL} characters cut by OMG …]`;
    return { ...part, text: `${part.text.slice(0, HEAD)}\n${seam}\n${part.text.slice(-TAIL)}` };
  });
  return { message: { ...message, content } };
}
