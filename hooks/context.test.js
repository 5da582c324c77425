// The context engine against a real socket: what the gateway gets back, whatever the daemon says or does not say.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { registerHooks } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

// Installed, daemon.js lies beside it (omg/openclaw/install.py).
registerHooks({
  resolve(specifier, context, next) {
    const beside = specifier === "./daemon.js" && context.parentURL?.includes("/context/");
    return next(beside ? "../daemon.js" : specifier, context);
  },
});
const { engine } = await import("./context/index.js");

const shared = globalThis[Symbol.for("omg.openclaw.context.1")];
const omg = Symbol.for("omg.openclaw.1");
const NOTES = "<omg-memory>notes</omg-memory>";
let sessions = 0;

function conversation(turns = 10) {
  return Array.from({ length: turns }, (_, n) => [
    { role: "user", content: `question ${n} ${"and so on ".repeat(20)}`, timestamp: 1000 * n },
    { role: "assistant", content: [{ type: "text", text: `answer ${n}` }, { type: "image", data: "AAAA" }], timestamp: 1000 * n + 1 },
  ]).flat();
}

/** An engine whose daemon answers with what `answer` makes of a question; `close` ends the daemon. */
async function scene(t, answer, deadlineMs = 1000) {
  shared.quietUntil = 0;
  const home = await mkdtemp(join(tmpdir(), "omg-"));
  const asked = [], warned = [];
  const server = createServer(async (req, res) => {
    asked.push([req.url, JSON.parse(Buffer.concat(await req.toArray()).toString())]);
    const value = await answer(asked.at(-1)[1]);
    res.writeHead(value === undefined ? 500 : 200).end(JSON.stringify(value ?? {}));
  });
  await new Promise((ok) => server.listen(join(home, "omg.sock"), ok));
  const close = () => new Promise((ok) => { server.close(ok); server.closeAllConnections(); });
  t.after(async () => { await close(); await rm(home, { recursive: true, force: true }); });
  const made = engine({ home: () => home, warn: (line) => warned.push(line), deadlineMs });
  const sessionKey = `agent:main:test:${++sessions}`;
  const assemble = (messages) => made.assemble({ sessionKey, messages, tokenBudget: 9000 });
  return { home, asked, warned, close, made, assemble, sessionKey };
}

test("the messages that the daemon names are replaced by the daemon's text", async (t) => {
  const { assemble, asked, sessionKey } = await scene(t, () => ({ text: NOTES, cut: [0, 1, 2, 3] }));
  const messages = conversation();
  const { messages: made } = await assemble(messages);
  assert.deepEqual(made[0], { role: "user", content: NOTES, timestamp: 1001 });
  assert.deepEqual(made.slice(1), messages.slice(4));
  const [[path, body]] = asked;
  assert.equal(path, "/context/assemble");
  assert.deepEqual([body.sessionKey, body.tokenBudget, body.messages.length], [sessionKey, 9000, messages.length]);
  assert.ok(!JSON.stringify(body).includes("AAAA")); // no image crosses the socket
});

test("if nothing is cut, the gateway gets the same messages back", async (t) => {
  const { assemble } = await scene(t, () => ({}));
  const messages = conversation();
  assert.equal((await assemble(messages)).messages, messages);
});

test("a question that the gateway made up is not sent to the daemon, and is cut with its answer", async (t) => {
  let cut = [0, 1, 2];
  const { assemble, asked, close } = await scene(t, () => ({ text: NOTES, cut }));
  const handed = () => [{ role: "user", content: "(session bootstrap)", timestamp: Date.now() }, ...conversation().slice(1)];
  const [, ...said] = handed();
  assert.deepEqual((await assemble(handed())).messages.slice(1), said.slice(3));
  assert.deepEqual(asked[0][1].messages.length, said.length);
  await close();
  assert.deepEqual((await assemble(handed())).messages.slice(1), said.slice(3)); // by the last answer
  const other = await scene(t, () => ({ text: NOTES, cut }));
  cut = [1, 2];
  const { messages: made } = await other.assemble(handed());
  assert.deepEqual(made.map(({ content }) => content).slice(0, 3), ["(session bootstrap)", said[0].content, NOTES]);
});

test("a bad answer of the daemon leaves the context unchanged", async (t) => {
  const answers = [
    undefined, null, 5, [], { text: 5, cut: [0] }, { text: NOTES }, { text: NOTES, cut: "all" }, { text: NOTES, cut: [99] },
    { text: NOTES, cut: [-1] }, { text: NOTES, cut: [0.5] }, { text: "long ".repeat(9999), cut: [0] }, { text: "", cut: [0] },
    { text: NOTES, cut: conversation().keys().toArray() }, { text: NOTES, cut: ["length"] }, { text: NOTES, cut: ["0", "1"] },
    { text: NOTES, cut: [0, 1], served: null }, { text: NOTES, cut: null },
  ];
  for (const answer of answers) {
    const { assemble } = await scene(t, () => answer);
    const messages = conversation();
    assert.equal((await assemble(messages)).messages, messages, JSON.stringify(answer));
  }
});

test("a daemon that hangs delays one turn, and is not asked again at once", async (t) => {
  const { assemble, asked } = await scene(t, () => new Promise(() => {}), 100);
  const messages = conversation();
  const since = performance.now();
  assert.equal((await assemble(messages)).messages, messages);
  assert.equal((await assemble(messages)).messages, messages);
  assert.ok(performance.now() - since < 1500);
  assert.equal(asked.length, 1);
});

test("without the daemon, cut messages stay cut until something is forgotten", async (t) => {
  const { assemble, close, home } = await scene(t, () => ({ text: NOTES, cut: [0, 1, 2, 3] }));
  const messages = conversation();
  const { messages: before } = await assemble(messages);
  await close();
  const longer = [...messages, { role: "user", content: "one more", timestamp: 99_000 }];
  assert.deepEqual((await assemble(longer)).messages, [...before, longer.at(-1)]);
  const slid = longer.slice(1); // the gateway hands over the newest bytes of a long transcript
  assert.deepEqual((await assemble(slid)).messages, [...before, longer.at(-1)]);
  const without = longer.toSpliced(1, 1); // one of those that were cut is not there any more: another conversation
  assert.equal((await assemble(without)).messages, without);
  await writeFile(join(home, "forgotten.json"), JSON.stringify({ at: 1 })); // whatever the clock says
  assert.equal((await assemble(longer)).messages, longer);
});

test("without the daemon, cut messages stay cut even if the clock was set back", async (t) => {
  const { assemble, close } = await scene(t, () => ({ text: NOTES, cut: [0, 1, 2, 3] }));
  const messages = conversation();
  for (const message of messages.slice(2)) message.timestamp -= 3_600_000;
  const { messages: before } = await assemble(messages);
  await close();
  assert.deepEqual((await assemble(messages)).messages, before);
});

test("of two runs that began in the same second, one can be cut alone, also without the daemon", async (t) => {
  const { assemble, close, asked } = await scene(t, () => ({ text: NOTES, cut: [0, 1, 2, 3] }));
  const messages = conversation();
  messages.forEach((message, n) => message.role === "user" && (message.idempotencyKey = `run-${n}:user`));
  messages[4].timestamp = messages[2].timestamp;
  const { messages: before } = await assemble(messages);
  assert.deepEqual((await assemble(messages)).messages, before);
  assert.equal(asked[1][1].messages[4].content, messages[4].content);
  await close();
  assert.deepEqual((await assemble(messages)).messages, before);
});

test("a turn waits at most 21 seconds for notes, whatever the daemon asks for", async (t) => {
  const waits = [];
  t.mock.method(AbortSignal, "timeout", (ms) => (waits.push(ms), new AbortController().signal));
  for (const wait_ms of [10 ** 9, "2000000", Infinity, -5, {}, "soon", NaN]) {
    const { assemble } = await scene(t, () => ({ wait_ms }));
    const messages = conversation();
    assert.equal((await assemble(messages)).messages, messages);
  }
  assert.ok(Math.max(...waits) <= 21_000, waits.join());
});

test("notes served with a message are not put before another message of the same millisecond", async (t) => {
  const { assemble } = await scene(t, () => ({ text: NOTES, cut: [0, 1, 2, 3], served: { 4: "FRESH", 6: 5, 99: "x" } }));
  const messages = conversation();
  messages[8].timestamp = messages[4].timestamp;
  const { messages: made } = await assemble(messages);
  assert.equal(made[1].content, `FRESH\n\n${messages[4].content}`);
  assert.deepEqual(made.slice(2), messages.slice(5));
});

test("a context with odd parts of messages can be cut, and an outline does not count images and thoughts", async (t) => {
  const { assemble, asked } = await scene(t, () => ({ text: NOTES, cut: [0, 1, 2, 3] }));
  const messages = conversation();
  messages[2].content = [null, "a part", 7, { type: "text", text: "so" }];
  messages[1].content.push({ type: "image", data: "A".repeat(99_999) }, { type: "thinking", thinking: "hm ".repeat(9_999) });
  assert.equal((await assemble(messages)).messages[0].content, NOTES);
  assert.deepEqual(asked[0][1].messages[2].content, messages[2].content);
  await assemble(messages);
  assert.ok(asked[1][1].messages[1].chars < 200);
});

test("without the daemon, older messages that the gateway hands over again are cut if the notes cover them", async (t) => {
  const whole = conversation();
  const messages = whole.slice(5); // the end of the third turn is handed over, and then all of it
  for (const [told, covered] of [[[-1, 2001], true], [[-1, 2000], false], [[0, 2001], false], [undefined, false]]) {
    const { assemble, close } = await scene(t, () => ({ text: NOTES, cut: [0, 1, 2], told }));
    const { messages: before } = await assemble(messages);
    await close();
    const kept = covered ? [] : whole.slice(0, 5);
    assert.deepEqual((await assemble(whole)).messages, [...kept, ...before], JSON.stringify(told));
  }
});

test("committing a turn captures the transcript, and succeeds even without the plugin that captures", async (t) => {
  const { made } = await scene(t, () => ({}));
  const captured = [];
  const turn = { advancementKey: "k", sessionKey: "s", sessionId: "i", sessionTarget: { agentId: "a" }, messages: [] };
  for (const capture of [async (...given) => captured.push(given), undefined]) {
    globalThis[omg] = { turns: new Map(), capture };
    assert.deepEqual(await made.commitTurn(turn), { status: "committed" });
  }
  assert.deepEqual(captured, [[{ agentId: "a", sessionKey: "s", sessionId: "i" }, []]]);
  assert.deepEqual(await made.ingest({}), { ingested: false });
});

test("notes served with a message are put before the message again, also without the daemon", async (t) => {
  const { assemble, close, asked, sessionKey } = await scene(t, () => ({ text: NOTES, cut: [0, 1, 2, 3], served: { 4: "FRESH\n", 6: "MORE\n" } }));
  globalThis[omg] = { turns: new Map([[sessionKey, { runId: "r", missed: true }]]) };
  const messages = conversation();
  messages[6].content = [{ type: "image" }, { type: "text", text: "look" }];
  const { messages: made } = await assemble(messages);
  assert.equal(made[1].content, `FRESH\n\n\n${messages[4].content}`);
  assert.deepEqual(made[3].content, [{ type: "image" }, { type: "text", text: "MORE\n\n\nlook" }]);
  assert.deepEqual(made.slice(4), messages.slice(7));
  assert.deepEqual([asked[0][1].runId, asked[0][1].missed], ["r", "r"]); // what it was to be served came too late
  await close();
  assert.deepEqual((await assemble(messages)).messages, made);
});

test("the daemon is sent only an outline of messages that were cut before", async (t) => {
  const { assemble, asked } = await scene(t, () => ({ text: NOTES, cut: [0, 1, 2, 3] }));
  const messages = conversation();
  messages[1].content = [{ type: "text", text: "so" }, { type: "toolCall", id: "a", name: "exec", arguments: { command: "ls" } }];
  const { messages: first } = await assemble(messages);
  assert.deepEqual((await assemble(messages)).messages, first);
  const [[, whole], [, again]] = asked;
  assert.deepEqual(again.messages.slice(4), whole.messages.slice(4));
  assert.deepEqual(again.messages[1], {
    role: "assistant", timestamp: 1, content: [{ type: "toolCall", id: "a" }], chars: JSON.stringify(messages[1].content).length,
  });
  assert.ok(!JSON.stringify(again).includes("question 0"));
});

test("a turn waits for observation if the daemon asks for this, and no longer than the daemon says", async (t) => {
  let waits = 0;
  const { assemble, asked } = await scene(t, async (body) => {
    if (!body.waits) return { wait_ms: 50 };
    if (waits++) return new Promise(() => {});
    return { text: NOTES, cut: [0, 1, 2, 3] };
  }, 100);
  const messages = conversation();
  const { messages: made } = await assemble(messages);
  assert.equal(made[0].content, NOTES);
  assert.deepEqual((await assemble(messages)).messages, made); // it did not come: as the last time
  assert.equal(asked.length, 4);
});

test("a large transcript is not compacted if notes replace its older part", async (t) => {
  const { assemble, made, sessionKey } = await scene(t, () => ({ text: NOTES, cut: [0, 1] }));
  await assemble(conversation());
  const asked = { sessionKey, runtimeContext: { preflightCompactionTrigger: "transcript_bytes" } };
  const { ok, compacted, reason } = await made.compact(asked);
  assert.deepEqual([ok, compacted], [true, false]);
  assert.match(reason, /^below threshold/); // by which the gateway knows a skip from a failure
  for (const other of [{ sessionKey }, { ...asked, sessionKey: "another" }])
    await assert.rejects(made.compact(other), { code: "ERR_MODULE_NOT_FOUND" }); // the gateway's own, which is not here
});
