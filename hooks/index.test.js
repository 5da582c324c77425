// The plugin against a gateway made of plain objects, a real daemon's socket, real files and real processes.
// What the real gateway does with it is shown in tests/gateway/.
import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { registerHooks } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

// The gateway's SDK: what these two modules export is looked up in `sdk` when it is called.
const sdk = {};
globalThis.sdk = sdk;
const source = "export const readSessionTranscriptVisibleMessageDelta = (p) => sdk.read(p);"
  + "export const listAgentIds = (config) => config.agents ?? ['main'];";
registerHooks({
  resolve(specifier, context, next) {
    if (!specifier.startsWith("openclaw/plugin-sdk/")) return next(specifier, context);
    if (!sdk.read) throw Object.assign(new Error(`no ${specifier}`), { code: "ERR_MODULE_NOT_FOUND" });
    return { url: `data:text/javascript,${encodeURIComponent(source)}`, shortCircuit: true };
  },
});
const { default: plugin } = await import("./index.js");
const { keeper } = await import("./daemon.js");

const HOUR = 3_600_000;
const ALICE = { agentId: "main", sessionKey: "agent:main:telegram:direct:111", sessionId: "s1", channel: "telegram", accountId: "default", senderId: "111", trigger: "user", runId: "r1" };
let sessions = 0;
const someone = () => ({ ...ALICE, sessionKey: `agent:main:test:${++sessions}` }); // the plugin keeps state by session

/** A gateway with our plugin registered: what it registered, and what it logged. */
async function gateway(t, config = {}, llm) {
  const home = await mkdtemp(join(tmpdir(), "omg-"));
  t.after(() => rm(home, { recursive: true, force: true }));
  const hooks = {}, tools = {}, methods = {}, warned = [], entries = [];
  const gw = { home, hooks, tools, methods, warned, entries, config: {} };
  const note = (message) => void warned.push(message);
  plugin.register({
    pluginConfig: { home, ...config },
    logger: { info: note, warn: note },
    runtime: {
      config: { current: () => gw.config },
      agent: { session: { listSessionEntries: () => entries } },
      llm: { complete: llm },
      state: { resolveStateDir: () => home },
    },
    on: (name, handler) => (hooks[name] = handler),
    registerService: (service) => (gw.service = service),
    registerTool: (make, { name }) => (tools[name] = make),
    registerCommand: (command) => (gw.command = command),
    session: { controls: { registerControlUiDescriptor: (tab) => (gw.tab = tab) } },
    registerHttpRoute: (route) => (gw.route = route),
    registerGatewayMethod: (name, handler) => (methods[name] = handler),
    registerMemoryPromptSupplement: (lines) => (gw.guidance = lines),
    registerMemoryCorpusSupplement: (corpus) => (gw.corpus = corpus),
  });
  return gw;
}

/** A daemon whose answers are functions by path; `asked` holds what it was asked. */
async function daemon(t, home, answers) {
  const asked = [];
  const server = createServer(async (req, res) => {
    const body = JSON.parse(Buffer.concat(await req.toArray()).toString());
    asked.push([req.url, body]);
    const value = await answers[req.url]?.(body);
    res.writeHead(value === undefined ? 500 : 200).end(JSON.stringify(value ?? {}));
  });
  await new Promise((ok) => server.listen(join(home, "omg.sock"), ok));
  const close = () => new Promise((ok) => { server.close(ok); server.closeAllConnections(); });
  t.after(close);
  return { asked, close, of: (path) => asked.filter(([p]) => p === path).map(([, body]) => body) };
}

/** A transcript whose cursor is a position, and which pages as the gateway's does. */
function transcript(t, { page = 100 } = {}) {
  const said = [], log = [];
  let era = 0;
  sdk.read = async ({ cursor, ...params }) => {
    log.push({ cursor, ...params });
    const [at, from] = cursor ? cursor.split("/").map(Number) : [era, 0];
    if (at !== era) return { kind: "reset", cursor: `${era}/0`, reason: "generation_mismatch" };
    const entries = said.slice(from, from + page);
    return { kind: "page", entries, cursor: `${era}/${from + entries.length}`, hasMore: from + page < said.length };
  };
  t.after(() => delete sdk.read);
  const say = (id, { role = "user", ago = 0, ...message } = {}) =>
    said.push({ entryId: id, createdAt: new Date(Date.now() + 1000 - ago).toISOString(), message: { role, content: id, ...message } });
  return { said, say, log, rewrite: () => era++ };
}

async function drops(home) {
  const names = (await readdir(join(home, "spool")).catch(() => [])).filter((name) => !name.startsWith(".")).sort();
  return Promise.all(names.map(async (name) => JSON.parse(await readFile(join(home, "spool", name), "utf8"))));
}
const ids = (drop) => drop.entries.map((entry) => entry.entryId);
const until = async (truth, ms = 10_000) => {
  for (const end = Date.now() + ms; !(await truth()); await sleep(20)) assert.ok(Date.now() < end, `never: ${truth}`);
};

test("registering the plugin writes no file", async (t) => {
  const { home } = await gateway(t);
  assert.deepEqual(await readdir(home), []);
});

test("a message is captured even if its turn was stopped before the prompt was built", async (t) => {
  const gw = await gateway(t), who = someone(), answered = someone(), { say } = transcript(t);
  for (const { sessionKey, sessionId } of [who, answered]) gw.entries.push({ sessionKey, entry: { sessionId, updatedAt: 1 } });
  await daemon(t, gw.home, { "/inject": () => ({}) });
  t.mock.timers.enable({ apis: ["setTimeout"] });
  say("q1");
  for (const { agentId, sessionKey } of [who, answered]) gw.hooks.before_message_write({ message: { role: "user" } }, { agentId, sessionKey });
  await gw.hooks.before_prompt_build({ prompt: "q1" }, answered); // its end will be told
  t.mock.timers.tick(15_000);
  t.mock.timers.reset();
  await until(async () => (await drops(gw.home)).length);
  await sleep(100);
  assert.deepEqual((await drops(gw.home)).map((drop) => [drop.sessionKey, drop.reason, ids(drop)]), [[who.sessionKey, "unanswered", ["q1"]]]);
});

test("the daemon is told who asks, and the hook returns only the two parts of memory from the answer", async (t) => {
  const gw = await gateway(t), who = someone();
  const d = await daemon(t, gw.home, { "/inject": () => ({ appendSystemContext: "S", prependContext: "P", systemPrompt: "no" }) });
  assert.deepEqual(await gw.hooks.before_prompt_build({ prompt: "hi" }, { ...who, messageProvider: "x", extra: 1 }), { appendSystemContext: "S", prependContext: "P" });
  assert.deepEqual(d.of("/inject"), [{ ...who, prompt: "hi" }]); // a channel outranks its provider
});

test("the daemon is told what the gateway says about the present speaker, and nothing about an earlier speaker", async (t) => {
  const gw = await gateway(t), { senderId, ...who } = someone();
  const d = await daemon(t, gw.home, { "/inject": () => ({}), "/corpus": () => ({}), "/tool": () => ({ text: "" }) });
  const { sessionKey } = who, profile = { type: "profile", id: "gateway-owner" };
  const store = (runId, meta) => gw.hooks.before_message_write({ message: { role: "user", content: "hi", idempotencyKey: `${runId}:user`, __openclaw: meta } }, { sessionKey });
  const ask = (runId) => gw.hooks.before_prompt_build({ prompt: "hi" }, { ...who, runId });
  const told = (path) => { const { senderIsOwner, senderIdentity } = d.of(path).map((body) => body.context ?? body).at(-1); return { senderIsOwner, senderIdentity }; };
  for (const message of [undefined, null, {}, { role: "user" }, { role: "user", idempotencyKey: "x:user" }])
    assert.equal(gw.hooks.before_message_write({ message }, {}), undefined);

  store("v1", { senderIsOwner: true }), gw.tools.omg_search({ sessionKey, senderIsOwner: true });
  await ask("v1");
  assert.deepEqual(told("/inject"), { senderIsOwner: true, senderIdentity: undefined });
  await gw.hooks.agent_end({}, { ...who, runId: "v1" });

  store("v2", { senderIdentity: profile, senderId: "p" }); // a phone with limited access
  const tool = gw.tools.omg_search({ sessionKey, senderIsOwner: false });
  await ask("v2"), await gw.corpus.search({ query: "x", agentSessionKey: sessionKey }), await tool.execute("call", {});
  for (const path of ["/inject", "/corpus", "/tool"]) assert.deepEqual(told(path), { senderIsOwner: false, senderIdentity: profile }, path);

  gw.tools.omg_search({ sessionKey, senderIsOwner: true }); // by HTTP, where a message is stored after its prompt is built
  await ask("v3");
  assert.deepEqual(told("/inject"), { senderIsOwner: true, senderIdentity: undefined });
  gw.tools.omg_search({ sessionKey }), await ask("v4");
  assert.deepEqual(told("/inject"), { senderIsOwner: undefined, senderIdentity: undefined });
});

test("only a final reply gets the line about what was noted", async (t) => {
  const gw = await gateway(t), who = { ...someone(), runId: "n1" };
  let text = "noted: x";
  const d = await daemon(t, gw.home, { "/inject": () => ({}), "/notice": () => ({ text }) });
  await gw.hooks.before_prompt_build({ prompt: "hi" }, who);
  const send = (more, runId = "n1") => gw.hooks.reply_payload_sending({ payload: { text: "Hello", mine: 1 }, kind: "final", ...more }, { sessionKey: who.sessionKey, runId });
  assert.deepEqual(await send(), { payload: { text: "Hello\n\nnoted: x", mine: 1 } });
  for (const other of [{ kind: "block" }, { payload: { mediaUrl: "x" } }]) assert.equal(await send(other), undefined);
  assert.equal(await send({}, "another"), undefined);
  text = "";
  assert.equal(await send(), undefined);
  await d.close();
  assert.equal(await send(), undefined);
  assert.equal(d.of("/notice").length, 2);
});

test("without the daemon, the last system part is served, and only to the same asker", async (t) => {
  const gw = await gateway(t), who = someone();
  const d = await daemon(t, gw.home, { "/inject": () => ({ appendSystemContext: "S", prependContext: "P" }) });
  const ask = (over) => gw.hooks.before_prompt_build({ prompt: "hi" }, { ...who, ...over });
  await ask();
  await d.close();
  assert.deepEqual(await ask(), { appendSystemContext: "S" });
  for (const over of [{ senderId: "222" }, { channel: "slack" }, { accountId: "b" }, { agentId: "b" }, { sessionKey: "b" }, { trigger: "heartbeat" }, { inputProvenance: { kind: "inter_session" } }])
    assert.equal(await ask(over), undefined, JSON.stringify(over));
  gw.tools.omg_search({ sessionKey: who.sessionKey, senderIsOwner: false });
  assert.equal(await ask(), undefined);
});

test("a system part that the daemon withdrew is not served again", async (t) => {
  const gw = await gateway(t), who = someone();
  const answers = [{ appendSystemContext: "S" }, {}];
  const d = await daemon(t, gw.home, { "/inject": () => answers.shift() });
  for (const expected of [{ appendSystemContext: "S", prependContext: undefined }, undefined])
    assert.deepEqual(await gw.hooks.before_prompt_build({ prompt: "hi" }, who), expected);
  await d.close();
  assert.equal(await gw.hooks.before_prompt_build({ prompt: "hi" }, who), undefined);
});

test("after a forgetting, an older system part is not served, even without the daemon", async (t) => {
  const gw = await gateway(t), who = someone();
  const d = await daemon(t, gw.home, { "/inject": () => ({ appendSystemContext: "S" }) });
  const served = { appendSystemContext: "S" };
  await writeFile(join(gw.home, "forgotten.json"), JSON.stringify({ at: Date.now() }));
  assert.deepEqual(await gw.hooks.before_prompt_build({ prompt: "hi" }, who), { ...served, prependContext: undefined });
  await d.close();
  assert.deepEqual(await gw.hooks.before_prompt_build({ prompt: "hi" }, who), served);
  await writeFile(join(gw.home, "forgotten.json"), JSON.stringify({ at: Date.now() - HOUR })); // the clock was set back
  assert.equal(await gw.hooks.before_prompt_build({ prompt: "hi" }, who), undefined);
  await rm(join(gw.home, "forgotten.json"));
  assert.equal(await gw.hooks.before_prompt_build({ prompt: "hi" }, who), undefined);
});

test("a daemon that hangs costs a turn one deadline, however often the turn asks", async (t) => {
  const gw = await gateway(t), who = someone();
  await daemon(t, gw.home, { "/inject": () => new Promise(() => {}) });
  const since = performance.now();
  for (let i = 0; i < 3; i++) assert.equal(await gw.hooks.before_prompt_build({ prompt: "hi" }, who), undefined);
  assert.ok(performance.now() - since < 200, `${performance.now() - since} ms`);
});

test("without a session, the daemon is not asked and nothing is captured", async (t) => {
  const gw = await gateway(t);
  transcript(t).say("a");
  const d = await daemon(t, gw.home, { "/inject": () => ({ appendSystemContext: "secret" }) });
  assert.equal(await gw.hooks.before_prompt_build({ prompt: "hi" }, { agentId: "main" }), undefined);
  await gw.hooks.agent_end({ messages: [1] }, {});
  assert.deepEqual([d.asked, await drops(gw.home)], [[], []]);
});

test("each turn leaves one drop with the new entries of the transcript", async (t) => {
  const gw = await gateway(t), who = someone(), said = transcript(t);
  said.say("a"), said.say("b", { role: "assistant" });
  await gw.hooks.agent_end({}, who);
  said.say("c");
  await gw.hooks.agent_end({}, who);
  await gw.hooks.agent_end({}, who);
  const [first, second, ...none] = await drops(gw.home);
  assert.deepEqual([ids(first), ids(second), none], [["a", "b"], ["c"], []]);
  const { v, reason, agentId, sessionKey, sessionId, channel, accountId, senderId, trigger } = first;
  assert.deepEqual({ v, reason, agentId, sessionKey, sessionId, channel, accountId, senderId, trigger, runId: "r1" }, { v: 1, reason: "turn", ...who });
});

test("captures of one session run one after another, and each page becomes a drop", async (t) => {
  const gw = await gateway(t), who = someone(), said = transcript(t, { page: 2 });
  for (const id of "abcde") said.say(id);
  await Promise.all([gw.hooks.agent_end({}, who), gw.hooks.before_reset({}, who), gw.hooks.agent_end({}, who)]);
  const taken = await drops(gw.home);
  assert.deepEqual(taken.filter((drop) => drop.entries.length).map(ids), [["a", "b"], ["c", "d"], ["e"]]);
  assert.deepEqual(taken.at(-1).reason, "reset");
});

test("a compaction leaves a drop even if the transcript has no new entry", async (t) => {
  const gw = await gateway(t), who = someone();
  transcript(t).say("a");
  await gw.hooks.agent_end({}, who);
  await gw.hooks.message_received({}, { sessionKey: who.sessionKey, channelId: "telegram", accountId: "default", senderId: "222" });
  await gw.hooks.before_compaction({ messageCount: 1 }, { sessionKey: who.sessionKey, sessionId: "s1", agentId: "main" });
  const { reason, entries, senderId } = (await drops(gw.home)).at(-1);
  assert.deepEqual({ reason, entries, senderId }, { reason: "compaction", entries: [], senderId: "222" });
});

test("a rewritten transcript is read again, without entries that were handed over hours ago", async (t) => {
  const gw = await gateway(t), who = someone(), said = transcript(t);
  await writeFile(join(gw.home, "installed.json"), '{"at": 1}');
  said.say("old", { ago: 3 * HOUR }), said.say("a");
  await gw.hooks.agent_end({}, who);
  said.rewrite();
  said.say("b");
  await gw.hooks.agent_end({}, who);
  assert.deepEqual((await drops(gw.home)).map(ids), [["old", "a"], ["a", "b"]]);
});

test("messages from before the installation are not captured", async (t) => {
  for (const installed of [undefined, JSON.stringify({ at: Date.now() })]) {
    const gw = await gateway(t), who = someone(), said = transcript(t);
    if (installed) await writeFile(join(gw.home, "installed.json"), installed);
    said.say("before", { ago: HOUR }), said.say("after");
    await gw.hooks.agent_end({}, who);
    assert.deepEqual((await drops(gw.home)).map(ids), [["after"]]);
  }
});

test("if a drop cannot be written, the next turn hands over its entries", async (t) => {
  const gw = await gateway(t), who = someone(), said = transcript(t);
  said.say("a");
  await writeFile(join(gw.home, "spool"), ""); // no folder can be made here
  await gw.hooks.agent_end({}, who);
  assert.match(gw.warned.join(), /not taken in yet/);
  await rm(join(gw.home, "spool"));
  said.say("b");
  await gw.hooks.agent_end({}, who);
  assert.deepEqual((await drops(gw.home)).map(ids), [["a", "b"]]);
  assert.deepEqual((await readdir(join(gw.home, "spool"))).filter((name) => name.startsWith(".")), []);
});

test("an entry larger than a page is read whole, and a transcript that is being rebuilt is read later", async (t) => {
  const gw = await gateway(t), who = someone();
  const big = { entryId: "big", message: { role: "user", content: "x" } };
  const pages = [{ kind: "unavailable", reason: "projection_rebuilding" }, { kind: "page", entries: [], cursor: "c", hasMore: true, requiredBytes: 9_000_000 }, { kind: "page", entries: [big], cursor: "d", hasMore: false }];
  const sizes = [];
  sdk.read = async ({ maxBytes }) => (sizes.push(maxBytes), pages.shift());
  t.after(() => delete sdk.read);
  await gw.hooks.agent_end({}, who);
  assert.deepEqual([sizes, (await drops(gw.home)).map(ids)], [[4_000_000, 4_000_000, 9_000_000], [["big"]]]);
});

test("a turn succeeds even if its transcript cannot be read", async (t) => {
  const gw = await gateway(t), who = someone();
  sdk.read = async () => { throw new Error("database is locked"); };
  t.after(() => delete sdk.read);
  await gw.hooks.agent_end({}, who);
  assert.match(gw.warned.join(), /database is locked/);
  assert.deepEqual(await drops(gw.home), []);
});

test("the service captures all sessions at its start, and removes the cursors of deleted sessions", async (t) => {
  const gw = await gateway(t, { command: ["true"] }), said = transcript(t);
  const live = someone(), idle = someone(), gone = someone();
  said.say("a");
  await gw.hooks.agent_end({}, gone);
  await rm(join(gw.home, "spool"), { recursive: true });
  const entry = { sessionId: "s1", updatedAt: Date.now() + 1000 };
  gw.entries.push({ sessionKey: live.sessionKey, entry }, { sessionKey: idle.sessionKey, entry: { ...entry, updatedAt: 5 } });
  gw.service.start();
  t.after(() => gw.service.stop());
  await until(async () => (await drops(gw.home)).length > 0);
  await until(async () => (await readdir(join(gw.home, "cursors"))).length === 1);
  const [{ reason, sessionKey, entries }, ...more] = await drops(gw.home);
  assert.deepEqual([reason, sessionKey, entries.length, more], ["catchup", live.sessionKey, 1, []]);
});

test("a tool call carries the asker, the run and the newest user message", async (t) => {
  const gw = await gateway(t), who = someone(), said = transcript(t);
  const d = await daemon(t, gw.home, { "/tool": () => ({ text: "found", details: { n: 1 } }), "/inject": () => ({}) });
  said.say("u1");
  await gw.hooks.agent_end({}, who);
  const tool = gw.tools.omg_remember({ agentId: "main", sessionKey: who.sessionKey, sessionId: "s1", messageChannel: "telegram", agentAccountId: "default", requesterSenderId: "111", senderIsOwner: false });
  await gw.hooks.before_prompt_build({ prompt: "hi" }, { ...who, runId: "r2" });
  await tool.execute("call", { text: "x" });
  said.say("u2", { content: [{ type: "text", text: "please" }], provenance: { kind: "internal_system" }, __openclaw: { senderId: "111" } }), said.say("b", { role: "assistant" });
  assert.deepEqual(await tool.execute("call", { text: "x" }), { content: [{ type: "text", text: "found" }], details: { n: 1 } });
  const [early, late] = d.of("/tool").map(({ context }) => context);
  const { runId, trigger, senderId, channel, accountId, senderIsOwner } = early;
  assert.deepEqual({ runId, trigger, senderId, channel, accountId, senderIsOwner }, { runId: "r2", trigger: "user", senderId: "111", channel: "telegram", accountId: "default", senderIsOwner: false });
  assert.deepEqual(early.userMessage, { id: "u1", text: "u1" });
  assert.deepEqual(late.userMessage, { id: "u2", text: "please", provenance: { kind: "internal_system" }, senderId: "111" });
});

test("without the daemon, tools and the command say so, and memory_search finds nothing", async (t) => {
  const gw = await gateway(t), who = someone();
  transcript(t);
  const { content } = await gw.tools.omg_search(who).execute("call", { query: "x" });
  assert.match(content[0].text, /does not answer/);
  assert.match((await gw.command.handler({ args: "status" })).text, /does not answer/);
  assert.deepEqual([await gw.corpus.search({ query: "x" }), await gw.corpus.get({ lookup: "x" })], [[], null]);
  let status;
  await gw.methods["omg.status"]({ respond: (ok, value) => (status = value) });
  assert.match(status.daemon.error, /ENOENT/);
});

test("the command and memory_search pass on the session that asks", async (t) => {
  const gw = await gateway(t);
  const hit = { corpus: "omg", path: "nodes/x", score: 1, snippet: "s" };
  const d = await daemon(t, gw.home, { "/command": () => ({ text: "fine" }), "/corpus": ({ op }) => (op === "search" ? { results: [hit] } : { result: hit }) });
  assert.deepEqual(await gw.command.handler({ args: "status", sessionKey: "k", senderId: "111" }), { text: "fine" });
  assert.deepEqual(await gw.corpus.search({ query: "x", agentId: "main", agentSessionKey: "k" }), [hit]);
  assert.deepEqual(await gw.corpus.get({ lookup: "nodes/x", agentSessionKey: "k" }), hit);
  assert.deepEqual(d.of("/command"), [{ args: "status", context: { sessionKey: "k", senderId: "111" } }]);
  assert.deepEqual(d.of("/corpus")[0], { op: "search", params: { query: "x" }, context: { agentId: "main", sessionKey: "k" } });
});

const ASKED = { messages: [{ role: "user", content: "U" }], systemPrompt: "S" }; // as the daemon words it (omg/llm/asker.py)

/** What the daemon is told when it puts these questions to the agent's model. */
async function answers(t, gw, questions) {
  const d = await daemon(t, gw.home, { "/health": () => ({ ok: true }), "/llm/next": async () => questions.shift() ?? (await sleep(50), {}), "/llm/done": () => ({}) });
  const wanted = questions.length;
  gw.service.start();
  await until(() => d.of("/llm/done").length === wanted);
  await gw.service.stop();
  return d.of("/llm/done").sort((a, b) => a.id - b.id);
}

test("a healthy daemon is used, and its questions go to the agent's model", async (t) => {
  const calls = [];
  const gw = await gateway(t, { command: ["false"] }, async ({ signal, ...asked }) => {
    calls.push(asked);
    if (asked.purpose === "omg.fail") throw new Error("overloaded");
    return { text: "[", provider: "mock", model: "m", usage: { inputTokens: 3 }, stopReason: "length" };
  });
  transcript(t);
  const questions = ["observe", "fail"].map((purpose, i) => ({ id: String(i), question: { ...ASKED, maxTokens: 9, purpose: `omg.${purpose}`, agentId: "main" } }));
  const [one, two] = await answers(t, gw, questions);
  assert.deepEqual(one, { id: "0", text: "[", usage: { inputTokens: 3 }, stopReason: "length", model: "mock/m" });
  assert.equal(two.error, "overloaded");
  assert.deepEqual(calls.find(({ purpose }) => purpose === "omg.observe"), { ...ASKED, maxTokens: 9, purpose: "omg.observe" });
});

test("with several agents, a question goes only to the model of its agent", async (t) => {
  const asked = [];
  const gw = await gateway(t, { command: ["false"] }, async ({ agentId }) => {
    asked.push(agentId);
    throw Object.assign(new Error("Not yours."), { code: "LLM_COMPLETION_NOT_AUTHORIZED" });
  });
  transcript(t);
  gw.config.agents = ["main", "b"];
  const [{ error, code }] = await answers(t, gw, [{ id: "1", question: { ...ASKED, agentId: "b" } }]);
  assert.deepEqual([asked, error, code], [["b"], "Not yours.", "LLM_COMPLETION_NOT_AUTHORIZED"]); // Python has the remedy
});

// A daemon as a program: it notes that it ran, answers on the socket, and ends with its stdin.
const PROGRAM = `
import { createServer } from "node:http"; import { appendFileSync, rmSync } from "node:fs";
const home = process.env.OMG_HOME; appendFileSync(home + "/ran", process.pid + " " + process.argv.slice(2) + "\\n");
rmSync(home + "/omg.sock", { force: true });
let hung = false; process.on("SIGUSR2", () => (hung = true));
createServer((req, res) => { if (!hung && req.url !== "/llm/next") res.end('{"ok":true}'); }).listen(home + "/omg.sock");
process.stdin.on("end", () => process.exit(0)).resume();
`;
const alive = (pid) => { try { return process.kill(pid, 0); } catch { return false; } };

async function program(t, home) {
  const folder = await mkdtemp(join(tmpdir(), "omg-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, "daemon.mjs"), PROGRAM);
  const ran = async () => (await readFile(join(home ?? folder, "ran"), "utf8").catch(() => "")).split("\n").filter(Boolean);
  return { folder, ran, pid: async (n) => Number((await ran())[n]?.split(" ")[0]) };
}

async function withProgram(t) {
  const { folder } = await program(t);
  const gw = await gateway(t, { command: [process.execPath, join(folder, "daemon.mjs")] });
  transcript(t);
  Object.assign(gw, await program(t, gw.home));
  gw.state = async () => { let s; await gw.methods["omg.status"]({ respond: (ok, value) => (s = value) }); return s.keeper.state; };
  gw.service.start();
  t.after(() => gw.service.stop());
  await until(async () => (await gw.state()) === "started");
  return gw;
}

test("the service starts one daemon, and ends it", async (t) => {
  const gw = await withProgram(t);
  await sleep(300);
  assert.deepEqual((await gw.ran()).map((line) => line.split(" ")[1]), ["serve,--with-parent"]);
  await gw.service.stop();
  assert.equal(alive(await gw.pid(0)), false);
});

test("a killed daemon is started again", async (t) => {
  const gw = await withProgram(t);
  process.kill(await gw.pid(0), "SIGKILL");
  await until(async () => (await gw.ran()).length === 2 && (await gw.state()) === "started");
  assert.match(gw.warned.join(), /is gone/);
});

test("a daemon that stopped answering is replaced", async (t) => {
  const { folder, ran, pid } = await program(t);
  const logger = { warn() {} };
  const command = [process.execPath, join(folder, "daemon.mjs")];
  const daemon = keeper({ home: () => folder, command, logger, healthMs: 200, pollMs: 500 });
  daemon.start();
  t.after(() => daemon.stop());
  const started = async (n) => (await ran()).length === n && daemon.report().state === "started";
  await until(() => started(1));
  process.kill(await pid(0), "SIGUSR2");
  await until(() => started(2));
  assert.equal(alive(await pid(0)), false);
});

test("with a fleet, drops and questions are sent to the fleet, and no daemon is started", async (t) => {
  const heard = [];
  let status = 503;
  const fleet = createServer(async (req, res) => {
    let body = "";
    for await (const chunk of req) body += chunk;
    heard.push({ url: req.url, token: req.headers.authorization, body: JSON.parse(body) });
    res.writeHead(req.url.startsWith("/drop/") ? status : 200).end(JSON.stringify(req.url === "/inject" ? { prependContext: "tea" } : {}));
  });
  await new Promise((ok) => fleet.listen(0, "127.0.0.1", ok));
  t.after(() => fleet.close());
  const gw = await gateway(t, { url: `http://127.0.0.1:${fleet.address().port}/`, token: "secret", command: ["/nowhere/omg"] });
  await mkdir(join(gw.home, "spool"));
  const spooled = async () => (await readdir(join(gw.home, "spool"))).filter((name) => name.endsWith(".json"));
  await writeFile(join(gw.home, "spool", "000000000000001-a.json"), JSON.stringify({ v: 1 }));
  gw.service.start();
  t.after(() => gw.service.stop());
  await until(() => heard.length); // refused: it stays
  assert.deepEqual(await spooled(), ["000000000000001-a.json"]);
  status = 200;
  await until(async () => (await spooled()).length === 0);
  assert.deepEqual(heard.at(-1), { url: "/drop/000000000000001-a.json", token: "Bearer secret", body: { v: 1 } });
  const given = await gw.hooks.before_prompt_build({ prompt: "what do I drink?" }, someone());
  assert.equal(given.prependContext, "tea");
  fleet.closeAllConnections();
  await new Promise((ok) => fleet.close(ok));
  assert.equal(await gw.hooks.before_prompt_build({ prompt: "and now?" }, ALICE), undefined);
});

test("if the command is missing, a warning names it", async (t) => {
  const gw = await gateway(t, { command: ["/nowhere/omg"] });
  transcript(t);
  gw.service.start();
  await until(() => gw.warned.some((line) => /nowhere.*omg install/.test(line)));
  await gw.service.stop();
});

test("long tool results are shortened only if the setting says so, and always in the same way", async (t) => {
  assert.equal((await gateway(t)).hooks.tool_result_persist, undefined);
  const { hooks } = await gateway(t, { trimToolResults: true });
  const message = (text) => ({ role: "toolResult", toolCallId: "c", content: [{ type: "image", data: "…" }, { type: "text", text }] });
  assert.equal(hooks.tool_result_persist({ message: message("x".repeat(24_000)) }), undefined);
  const long = message(`begin${"x".repeat(30_000)}end`);
  const { message: cut } = hooks.tool_result_persist({ message: long });
  assert.deepEqual(hooks.tool_result_persist({ message: long }), { message: cut });
  assert.match(cut.content[1].text, /^begin[^]*10008 characters cut[^]*end$/);
  assert.deepEqual([cut.toolCallId, cut.content[0], cut.content[1].text.length < 21_000], ["c", message("").content[0], true]);
});

test("the guidance is always the same two lines, so that prompt caches work", async (t) => {
  const { guidance } = await gateway(t);
  assert.equal(guidance({}).length, 2);
  assert.deepEqual(guidance({}), guidance({ agentId: "b" }));
});

test("the manifest names every tool", async (t) => {
  const { tools } = await gateway(t);
  const manifest = JSON.parse(await readFile(new URL("./openclaw.plugin.json", import.meta.url)));
  assert.deepEqual(manifest.contracts.tools, Object.keys(tools));
});

test("without the gateway's cursors, the event's own messages are handed over", async (t) => {
  const gw = await gateway(t), who = someone();
  delete sdk.read; // the import itself fails
  await gw.hooks.agent_end({ messages: [{ role: "user", content: "hi" }] }, who);
  assert.deepEqual((await drops(gw.home)).map(({ entries }) => entries), [[{ message: { role: "user", content: "hi" } }]]);
});

test("the tab shows the daemon's page by a route that the gateway protects, and only for reading", async (t) => {
  const gw = await gateway(t);
  const answers = { "/page": ({ view }) => ({ status: 200, html: `<p>${view}</p>`, policy: "default-src 'none'" }) };
  const { of } = await daemon(t, gw.home, answers);
  assert.equal(gw.route.auth, "gateway");
  assert.equal(gw.tab.path, gw.route.path);
  assert.deepEqual(gw.tab.requiredScopes, ["operator.read"]);
  const get = async (method, url) => {
    const res = { headers: {}, setHeader: (name, value) => (res.headers[name] = value), end: (text) => (res.text = text) };
    assert.equal(await gw.route.handler({ method, url }, res), true);
    return res;
  };
  const shown = await get("GET", "/base/plugins/omg/page/note?path=nodes/fact/x");
  assert.equal(shown.text, "<p>note</p>");
  assert.equal(shown.headers["content-security-policy"], "default-src 'none'");
  assert.deepEqual(of("/page"), [{ view: "note", params: { path: "nodes/fact/x" }, base: "/base/plugins/omg/page" }]);
  assert.equal((await get("POST", "/plugins/omg/page/note")).statusCode, 405);
});
