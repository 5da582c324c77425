// The daemon as seen from the gateway: one question over its socket, and the care that one is there.
// A healthy daemon is used, whoever started it; else one is started on a pipe that closes with this
// process, so that it cannot outlive a gateway that was killed. The daemon's own lock keeps it to one.
import { spawn } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const HEALTH_MS = 5_000; // four times in vain, and a daemon of ours is replaced; loading a model takes less
const START_MS = 30_000; // a cold Python on a busy machine
const POLL_MS = 35_000; // the daemon answers a long poll within 25 s
const MODEL_MS = 180_000;
const STOP_MS = 3_000; // the gateway gives a service five
const PAUSE_MS = { first: 250, longest: 60_000, settled: 60_000 }; // after `settled` of life, `first` again

/** POST to the daemon's socket. Rejects after `deadlineMs`, and for anything but a 200 with JSON. */
export function ask(home, path, body, deadlineMs, signal) {
  const deadline = AbortSignal.timeout(deadlineMs);
  return new Promise((resolve, reject) => {
    const options = { socketPath: join(home, "omg.sock"), path, method: "POST", agent: false };
    const either = signal ? AbortSignal.any([signal, deadline]) : deadline;
    const req = request({ ...options, signal: either }, (res) => {
      const chunks = [];
      res.on("error", reject);
      res.on("data", (chunk) => chunks.push(chunk));
      res.on("end", () => {
        try {
          const text = Buffer.concat(chunks).toString();
          if (res.statusCode === 200) return resolve(JSON.parse(text));
          reject(new Error(`${path}: HTTP ${res.statusCode}: ${text.slice(0, 200)}`));
        } catch (err) {
          reject(err);
        }
      });
    });
    const late = new Error(`${path}: no answer within ${deadlineMs} ms`);
    req.on("error", (err) => reject(deadline.aborted ? Object.assign(late, { code: "ETIMEDOUT" }) : err));
    req.end(JSON.stringify(body));
  });
}

/** The service: `start` returns at once, `stop` when nothing of ours is left. */
export function keeper({ home, command, complete, logger, healthMs = HEALTH_MS }) {
  let life, loop, child, poll, doubting;
  let state = "stopped";

  function start() {
    life = new AbortController();
    loop = run(life.signal).catch((err) => logger.warn(`omg: the daemon's keeper gave up: ${err.message}`));
  }

  async function stop() {
    life?.abort();
    await loop; // it may be about to start one
    if (child) await end(child);
    state = "stopped";
  }

  async function run(signal) {
    let pauseMs = PAUSE_MS.first;
    while (!signal.aborted) {
      const since = Date.now();
      try {
        await attach(signal);
        await serveModels(signal);
      } catch (err) {
        if (signal.aborted) return;
        state = `away: ${err.message}`;
        logger.warn(`omg: ${err.message}; trying again in ${pauseMs} ms. Conversations are kept meanwhile.`);
      }
      await sleep(pauseMs, undefined, { signal }).catch(() => {});
      const lasted = Date.now() - since > PAUSE_MS.settled;
      pauseMs = lasted ? PAUSE_MS.first : Math.min(pauseMs * 2, PAUSE_MS.longest);
    }
  }

  /** Returns once a daemon answers. One of ours that has stopped answering is killed first. */
  async function attach(signal) {
    if (await healthy(signal)) return void (state = child ? "started" : "attached");
    if (child) await end(child, "SIGKILL");
    if (signal.aborted) return;
    state = "starting";
    const started = await launch();
    for (const until = Date.now() + START_MS; Date.now() < until && !signal.aborted; ) {
      if (await healthy(signal)) return void (state = child ? "started" : "attached");
      // Gone already: another gateway's daemon won the lock, or ours cannot start.
      if (started.gone && !(await healthy(signal))) throw new Error(started.gone);
      await sleep(100, undefined, { signal }).catch(() => {});
    }
    if (!signal.aborted) throw new Error(`the daemon did not answer within ${START_MS / 1000} s`);
  }

  async function launch() {
    await mkdir(home(), { recursive: true, mode: 0o700 });
    const [program, ...args] = command;
    const options = { env: { ...process.env, OMG_HOME: home() }, stdio: ["pipe", "ignore", "pipe"] };
    const mine = spawn(program, [...args, "serve", "--with-parent"], options);
    const started = { gone: undefined };
    let said = "";
    mine.stderr.on("data", (chunk) => (said = (said + chunk).slice(-500)));
    for (const stream of [mine.stdin, mine.stderr]) stream.on("error", () => {}); // it closed with the child
    const gone = (why) => {
      started.gone ??= `the daemon ended: ${why}`;
      if (child === mine) child = undefined;
    };
    const setting = "`omg install` writes its path into plugins.entries.omg.config.command";
    mine.on("error", (err) => gone(`${err.message}; ${setting}`));
    mine.on("exit", (code, signal) => gone(said.trim() || (signal ?? `exit code ${code}`)));
    child = mine;
    return started;
  }

  async function healthy(signal) {
    try {
      return (await ask(home(), "/health", {}, healthMs, signal)).ok === true;
    } catch {
      return false;
    }
  }

  /** Hand the daemon's questions to the agent's own model, until the daemon is gone. */
  async function serveModels(signal) {
    while (!signal.aborted) {
      poll = new AbortController();
      try {
        const next = await ask(home(), "/llm/next", {}, POLL_MS, AbortSignal.any([signal, poll.signal]));
        if (next.id !== undefined) void answer(next, signal); // its own errors are answers
      } catch (err) {
        const gone = poll.signal.aborted || !(await alive(signal));
        if (gone) throw new Error(`the daemon is gone (${err.message})`);
        await sleep(PAUSE_MS.first, undefined, { signal }).catch(() => {}); // it refuses: not in a tight ring
      }
    }
  }

  async function alive(signal) {
    for (let tries = 0; tries < 3 && !signal.aborted; tries++) if (await healthy(signal)) return true;
    return false;
  }

  /** A question went unanswered: look now whether it lives, not when the long poll ends. Never rejects. */
  async function doubt() {
    if (doubting || !poll) return;
    doubting = true;
    if (!(await alive(life.signal))) poll.abort();
    doubting = false;
  }

  async function answer({ id, question }, signal) {
    let done;
    try {
      const reply = await complete(question, AbortSignal.any([signal, AbortSignal.timeout(MODEL_MS)]));
      done = { id, text: reply.text, usage: reply.usage, model: `${reply.provider}/${reply.model}` };
    } catch (err) {
      done = { id, error: err.message, code: err.code };
    }
    const lost = (err) => logger.warn(`omg: a model's reply was lost: ${err.message}`);
    await ask(home(), "/llm/done", done, 5_000).catch(lost);
  }

  const report = () => ({ state, pid: child?.pid });
  return { start, stop, doubt, report };
}

async function end(child, signal = "SIGTERM") {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const gone = new Promise((ok) => child.once("exit", ok));
  child.stdin.end();
  child.kill(signal);
  const late = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
  await gone;
  clearTimeout(late);
}
