// The daemon as seen from the gateway: `ask` asks one question over its socket, and `keeper` keeps a daemon running.
// A healthy daemon is used, whoever started it. Otherwise `keeper` starts a daemon on a pipe that closes with this
// process, so that the daemon ends even if the gateway is killed. The daemon's own lock keeps a second daemon away.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile, rename, rm } from "node:fs/promises";
import * as http from "node:http";
import * as https from "node:https";
import { homedir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";

const HEALTH_MS = 5_000; // after four such waits our daemon is replaced; loading a model takes less
const START_MS = 30_000; // a cold Python on a busy machine
const POLL_MS = 12_000; // the daemon answers a long poll within 8 s
const MODEL_MS = 180_000;
const DROP_MS = 30_000, SPOOL_MS = 500; // deadline of a drop sent to a fleet; time between two looks at the spool
const STOP_MS = 3_000; // the gateway gives a service 5 s
const PAUSE_MS = { first: 250, longest: 60_000, settled: 60_000 }; // a daemon that lived for `settled` resets to `first`

export function homeOf(configured, api) {
  const given = configured || process.env.OMG_HOME;
  return given ? given.replace(/^~(?=\/|$)/, homedir()) : join(api.runtime.state.resolveStateDir(), "omg");
}

/**
 * The text of forgotten.json, which changes whenever something is forgotten (omg/forget/removal.py), because memory
 * from before may quote it. The file's time is not used, because clocks can be set back. NaN, which equals nothing, if
 * the file cannot be read.
 */
export async function forgottenMark(home) {
  return readFile(join(home, "forgotten.json"), "utf8").catch((err) => (err.code === "ENOENT" ? "" : NaN));
}

/** The fleet that replaces the daemon, as `{url, token}`, from the configuration, the environment or fleet.json. */
export async function fleetOf(home, configured) {
  const { OMG_FLEET_URL: url, OMG_FLEET_TOKEN: token } = process.env;
  if (configured?.url && configured.token) return configured;
  if (url && token) return { url, token };
  const kept = await readFile(join(home, "fleet.json"), "utf8").catch(() => "null");
  return JSON.parse(kept) ?? undefined;
}

/** POST to the daemon's socket, or to `fleet`. Rejects after `deadlineMs`, or if the answer is not a 200 with JSON. */
export async function ask(home, path, body, deadlineMs, signal, fleet) {
  const data = JSON.stringify(body);
  const deadline = AbortSignal.timeout(deadlineMs);
  const either = signal ? AbortSignal.any([signal, deadline]) : deadline;
  try {
    const options = { method: "POST", signal: either };
    const req = fleet
      ? (fleet.url.startsWith("https:") ? https : http).request(fleet.url.replace(/\/$/, "") + path, {
          ...options,
          headers: { authorization: `Bearer ${fleet.token}`, "content-type": "application/json" },
        })
      : http.request({ ...options, socketPath: join(home, "omg.sock"), path, agent: false });
    req.on("error", () => {}); // `once` rejects with the first
    req.end(data);
    const [res] = await once(req, "response");
    const said = await text(res);
    if (res.statusCode !== 200)
      throw Object.assign(new Error(`${path}: HTTP ${res.statusCode}: ${said.slice(0, 200)}`), { status: res.statusCode });
    return JSON.parse(said);
  } catch (err) {
    if (!deadline.aborted) throw err;
    throw Object.assign(new Error(`${path}: no answer within ${deadlineMs} ms`), { code: "ETIMEDOUT" });
  }
}

/** The service that keeps a daemon running. `start` returns at once, `stop` once our daemon has ended. */
export function keeper({ home, command, complete, logger, fleet, healthMs = HEALTH_MS, pollMs = POLL_MS }) {
  let stopping, loop, child;
  let state = "stopped";

  function start() {
    stopping = new AbortController();
    loop = run(stopping.signal).catch((err) => logger.warn(`omg: the daemon's keeper gave up: ${err.message}`));
  }

  async function stop() {
    stopping?.abort();
    await loop; // the loop may be starting a daemon
    await end(child);
    state = "stopped";
  }

  async function run(signal) {
    for (let pauseMs = PAUSE_MS.first; !signal.aborted; ) {
      const since = Date.now();
      try {
        const there = await fleet?.();
        if (there) {
          await handOver(there, signal);
          continue;
        }
        await attach(signal);
        await serveModels(signal);
      } catch (err) {
        if (signal.aborted) return;
        state = `away: ${err.message}`;
        logger.warn(`omg: ${err.message}; trying again in ${pauseMs} ms. Conversations are kept meanwhile.`);
      }
      await pause(pauseMs, signal);
      const lasted = Date.now() - since > PAUSE_MS.settled;
      pauseMs = lasted ? PAUSE_MS.first : Math.min(pauseMs * 2, PAUSE_MS.longest);
    }
  }

  /** Send the drops in the spool to the fleet, oldest first. A file is removed once the fleet has it. */
  async function handOver(there, signal) {
    const spool = join(home(), "spool");
    while (!signal.aborted) {
      const found = await readdir(spool).catch(() => []);
      for (const name of found.filter((name) => /^[^.].*\.json$/.test(name)).sort()) {
        try {
          await ask(home(), `/drop/${name}`, JSON.parse(await readFile(join(spool, name), "utf8")), DROP_MS, signal, there);
          await rm(join(spool, name), { force: true });
        } catch (err) {
          if (![413, 422].includes(err.status) && !(err instanceof SyntaxError)) throw err;
          await mkdir(join(spool, "bad"), { recursive: true, mode: 0o700 }); // else this drop blocks later ones
          await rename(join(spool, name), join(spool, "bad", name));
          logger.warn(`omg: ${name} is set aside in spool/bad: ${err.message}`);
        }
      }
      state = "fleet";
      await pause(SPOOL_MS, signal);
    }
  }

  /** Start a daemon if none answers. Returns once a daemon answers. A daemon of ours that hangs is killed first. */
  async function attach(signal) {
    const until = Date.now() + healthMs + START_MS;
    for (let started; !signal.aborted; await pause(100, signal)) {
      if (await healthy(signal)) return void (state = child ? "started" : "attached");
      if (signal.aborted) return;
      // Our daemon has ended: it cannot start, or another gateway's daemon holds the lock.
      if (started?.gone) throw new Error(started.gone);
      if (Date.now() > until) throw new Error(`the daemon did not answer within ${START_MS / 1000} s`);
      started ??= await launch();
    }
  }

  async function launch() {
    await end(child, "SIGKILL");
    state = "starting";
    await mkdir(home(), { recursive: true, mode: 0o700 });
    const [program, ...args] = command;
    const options = { env: { ...process.env, OMG_HOME: home() }, stdio: ["pipe", "ignore", "pipe"] };
    const mine = spawn(program, [...args, "serve", "--with-parent"], options);
    const started = { gone: undefined };
    let said = "";
    mine.stderr.on("data", (chunk) => (said = (said + chunk).slice(-500)));
    for (const stream of [mine.stdin, mine.stderr]) stream.on("error", () => {}); // a stream closes with the child
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

  const healthy = (signal) =>
    ask(home(), "/health", {}, healthMs, signal).then(({ ok }) => ok === true).catch(() => false);

  /** Put the daemon's questions to the agent's own model. Rejects once the daemon no longer answers. */
  async function serveModels(signal) {
    while (!signal.aborted) {
      try {
        const next = await ask(home(), "/llm/next", {}, pollMs, signal);
        const lost = (err) => logger.warn(`omg: a model's reply was lost: ${err.message}`);
        if (next.id !== undefined) answer(next, signal).catch(lost);
      } catch (err) {
        let alive = false;
        for (let tries = 0; tries < 3 && !alive && !signal.aborted; tries++) alive = await healthy(signal);
        if (!alive) throw new Error(`the daemon is gone (${err.message})`);
        await pause(PAUSE_MS.first, signal); // the daemon lives but refuses: do not ask in a tight loop
      }
    }
  }

  async function answer({ id, question }, signal) {
    let done;
    try {
      const reply = await complete(question, AbortSignal.any([signal, AbortSignal.timeout(MODEL_MS)]));
      const { text, usage, stopReason } = reply;
      done = { id, text, usage, stopReason, model: `${reply.provider}/${reply.model}` };
    } catch (err) {
      done = { id, error: String(err?.message ?? err), code: err?.code };
    }
    await ask(home(), "/llm/done", done, 5_000);
  }

  return { start, stop, report: () => ({ state, pid: child?.pid }) };
}

const pause = (ms, signal) => sleep(ms, undefined, { signal }).catch(() => {});

async function end(child, signal = "SIGTERM") {
  if (!child || child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const gone = new Promise((ok) => child.once("exit", ok));
  child.stdin.end();
  child.kill(signal);
  const late = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
  await gone;
  clearTimeout(late);
}
