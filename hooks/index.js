// The part of OMG that runs inside the gateway. It only moves bytes; the daemon (omg/daemon.py) decides what to
// remember and what to inject. A turn must never fail or wait because of us, so every promise ends in a catch, and every
// question has a deadline.
//
//   before_prompt_build                        ask the daemon for memory, and return its answer
//   reply_payload_sending                      add a line about what was noted since the last reply
//   agent_end, before_compaction, before_reset put new messages of the transcript into the spool (spool.js)
//   a service                                  keeps one daemon running while the gateway runs (daemon.js)
//   tools, /omg, memory_search, omg.status     pass the question to the daemon, with the asker
//   a tab of the Control UI                    shows the daemon's page, for reading only
import { setTimeout as sleep } from "node:timers/promises";
import { ask, fleetOf, forgottenMark, homeOf, keeper } from "./daemon.js";
import { remember, spooler } from "./spool.js";
import words from "./words.json" with { type: "json" }; // the texts that models are given about OMG

const DEADLINE_MS = 150; // the longest wait of a turn for memory
const AHEAD_MS = 40; // the longest wait before a compaction or reset; the transcript keeps everything anyway
const COMMIT_MS = 2_000; // the longest wait of a turn that is committed to the context engine; the capture continues
const CAPTURE_MS = 20_000; // nobody waits for agent_end; the gateway's own limit is 30 s
const UNBEGUN_MS = 15_000; // a prompt follows its message within seconds; if a turn is stopped before its prompt, no hook tells
const TOOL_MS = 10_000;
const SEARCH_MS = 2_000;
const SERVED_FOR_MS = 15 * 60_000; // how long the last `system` part is used while the daemon is away
const QUIET_MS = 1_000; // after a missed deadline the daemon is not asked for so long: a prompt that is built twice waits once
const PAGE = "/plugins/omg/page"; // path of the tab in the Control UI
const LONGEST_PROMPT = 100_000; // characters; less is enough to find the memory for a prompt
const LONG_TEXT = 24_000, HEAD = 16_000, TAIL = 4_000; // characters of a tool result

// What the gateway says about the speaker: whether they may administer the gateway, and which profile is theirs.
const VOUCHED = ["senderIsOwner", "senderIdentity"];
// The fields that identify the asker. If one field differs, the asker is another.
const ASKER = ["agentId", "sessionKey", "channel", "accountId", "senderId", "trigger", "inputProvenance", ...VOUCHED];

// The gateway loads this file several times into one process: one instance for services, channels and commands,
// another for the agents' runs. This is the state that they share.
const shared = (globalThis[Symbol.for("omg.openclaw.1")] ??= {
  served: new Map(), // asker -> the last `system` part, because old memory is better than none
  turns: new Map(), // session -> the last speaker, and the run
  speakers: new Map(), // session -> what the gateway says about the speaker, during a run
  began: new Map(), // run -> what the gateway says about the sender of the message that began the run
  unbegun: new Map(), // session -> the timer of a message whose prompt is not built yet
  busy: new Map(), // session -> the capture that is running
  newest: new Map(), // session -> the newest user message in the spool
  slowest: {}, // hook -> its longest duration in ms, for omg.status
  quietUntil: 0,
});

export default {
  id: "omg",
  name: "Observational Memory Graph",
  description: "Remembers conversations as a graph of markdown notes that a person can read and correct.",

  register(api) {
    // Registration only, because the gateway and its command line call this several times.
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
          turn.missed = true; // the daemon's answer is in no request
          if (err.code === "ETIMEDOUT") shared.quietUntil = Date.now() + QUIET_MS;
        }
      }
      if (await fleet()) return; // we cannot know what was forgotten there meanwhile
      const now = await forgottenMark(home());
      for (const [whose, { forgotten }] of served) if (forgotten !== now) served.delete(whose);
      const { appendSystemContext, at } = served.get(key) ?? {};
      if (appendSystemContext && Date.now() - at < SERVED_FOR_MS) return { appendSystemContext };
    });

    // The line about what was noted is added to the message that is sent, not to the transcript.
    on("reply_payload_sending", async ({ payload, kind, ...event }, ctx) => {
      const turn = turns.get(ctx.sessionKey ?? event.sessionKey);
      const isReply = kind === "final" && payload?.text && turn?.trigger && turn.runId === (ctx.runId ?? event.runId);
      if (!isReply || (await fleet())) return; // no run: the answer to a command
      const { text } = await asked("/notice", turn, DEADLINE_MS).catch(() => ({}));
      if (text) return { payload: { ...payload, text: `${payload.text}\n\n${text}` } };
    });

    const capture = (reason, deadlineMs) => async (event, ctx) => {
      const turn = { ...turns.get(ctx.sessionKey), ...who(ctx) };
      if (!turn.sessionKey || !turn.sessionId) return;
      const late = sleep(deadlineMs, undefined, { ref: false }); // the capture continues in the background
      await Promise.race([spool.capture(reason, turn, event.messages), late]);
    };
    const atEnd = capture("turn", CAPTURE_MS);
    on("agent_end", (event, ctx) => {
      speakers.delete(ctx.sessionKey); // the next speaker may be somebody else
      clearTimeout(unbegun.get(ctx.sessionKey)); // in the HTTP API the message is stored after its prompt
      return atEnd(event, ctx);
    });
    on("before_compaction", capture("compaction", AHEAD_MS));
    on("before_reset", capture("reset", AHEAD_MS));
    // Events of compaction and reset name only the session, so the speaker is noted here.
    on("message_received", (event, { sessionKey, channelId: channel, accountId, senderId }) => {
      if (sessionKey) remember(turns, sessionKey, { ...turns.get(sessionKey), channel, accountId, senderId });
    });
    // The gateway names a known speaker when it stores the message that begins a run: before the prompt is built, but in
    // the HTTP API after it. This handler has to be synchronous, and changes nothing.
    api.on("before_message_write", ({ message }, ctx) => {
      if (message?.role === "user" && ctx?.sessionKey) expectPrompt(ctx);
      const [run, isBeginning] = String(message?.idempotencyKey).split(/:(user)$/);
      if (isBeginning && message.role === "user") remember(began, run, picked(message.__openclaw ?? {}, VOUCHED));
    });
    /** Capture a message without agent_end if no prompt is built for the message, for example after /stop. */
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
    /** What the gateway says about the speaker of a run, or of the session's last run. */
    const vouched = ({ sessionKey, runId = turns.get(sessionKey)?.runId }) =>
      ({ ...began.get(runId), ...speakers.get(sessionKey) });
    if (trimToolResults) api.on("tool_result_persist", ({ message }) => trimmed(message)); // synchronous, by contract

    api.registerService({
      id: "omg-daemon",
      start() {
        daemon.start();
        // Not awaited, because a service has only five seconds to start, and there may be many sessions.
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
      // The gateway makes the tools of a run before the run's prompt, and says here whether the owner speaks.
      api.registerTool((context) => {
        if (context.sessionKey) remember(speakers, context.sessionKey, picked(context, ["senderIsOwner"]));
        return { ...tool, execute: execute(context) };
      }, { name: tool.name });
    }

    /** The asker of a tool call, as the gateway names them, and the user's message that led to the call. */
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
      description: "What is remembered: /omg status, today, decide, why, search <words>, undo <cycle>, forget <words>",
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

    // The tab's frame can only read, through a route that the gateway protects. The daemon makes the page.
    // An older gateway has no tabs.
    if (api.session?.controls?.registerControlUiDescriptor) {
      api.registerHttpRoute({ path: PAGE, match: "prefix", auth: "gateway", handler: page });
      api.session.controls.registerControlUiDescriptor({
        surface: "tab", id: "memory", label: "OMG", description: "What is remembered, why it was given, and what was done.",
        icon: "brain", group: "control", path: PAGE, slug: "omg", requiredScopes: ["operator.read"],
      });
    }
    async function page({ method, url }, res) {
      const { pathname, searchParams } = new URL(url, "http://gateway");
      const end = pathname.indexOf(PAGE) + PAGE.length;
      const question = { view: pathname.slice(end + 1), params: Object.fromEntries(searchParams), base: pathname.slice(0, end) };
      const away = (err) => ({ status: 503, html: `OMG does not answer (${err.code ?? "refused"}).`, policy: "default-src 'none'" });
      const reads = method === "GET" || method === "HEAD";
      const { status, html, policy } = reads ? await asked("/page", question, SEARCH_MS).catch(away) : { status: 405, html: "", policy: "default-src 'none'" };
      res.statusCode = status;
      res.setHeader("content-type", "text/html; charset=utf-8");
      res.setHeader("content-security-policy", policy);
      res.setHeader("cache-control", "no-store");
      res.setHeader("x-content-type-options", "nosniff");
      res.setHeader("referrer-policy", "no-referrer");
      res.end(method === "HEAD" ? "" : html);
      return true;
    }

    api.registerMemoryPromptSupplement(() => words.guidance);

    const corpus = (op, { agentId, agentSessionKey: sessionKey, sandboxed, ...params }) =>
      asked("/corpus", { op, params, context: { agentId, sessionKey, sandboxed, ...vouched({ sessionKey }) } }, SEARCH_MS).catch(() => ({}));
    api.registerMemoryCorpusSupplement({
      search: async (params) => (await corpus("search", params)).results ?? [],
      get: async (params) => (await corpus("get", params)).result ?? null,
    });
  },
};

/** The speaker and session of a turn, for the daemon. Hooks of compaction call the channel `messageProvider`. */
function who({ messageProvider: channel, ...ctx }) {
  return picked({ channel, ...ctx }, ASKER, "sessionId", "runId", "chatId", "workspaceDir", "modelId");
}

/** The fields `keys` and `more` of `from`, in this order, without fields that are undefined. */
function picked(from, keys, ...more) {
  return Object.fromEntries([...keys, ...more].filter((k) => from[k] !== undefined).map((k) => [k, from[k]]));
}

// The gateway's SDK is imported inside functions, because an older gateway lacks parts of the SDK.
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

/** Calls the agent's own model. With several agents, the call has to name the agent, and the owner has to allow it. */
function completer(api) {
  return (asked, signal) => outside(async () => {
    const { agentId, ...question } = asked;
    const several = agentId && (await agentsOf(api)).length > 1;
    return api.runtime.llm.complete({ ...question, ...(several && { agentId }), signal });
  });
}

/**
 * Run `run` outside of the service's async context. A service has the context of the plugin operation that started it
 * (an install, a reload, the gateway's start). The next operation ends this context, and the gateway then refuses the
 * service a model. `detachedAsyncContext` belongs to no operation. An older gateway without it needs a restart.
 */
function outside(run) {
  const detached = globalThis[Symbol.for("openclaw.detachedAsyncContext")];
  return detached ? detached.runInAsyncScope(run) : run();
}

/** A tool result with each long text cut to its beginning and end. Equal texts are cut in the same way. */
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
