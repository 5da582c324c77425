// OMG in OpenCode: asks the daemon for the memory of a prompt, and leaves a mark when a turn is over. It captures no
// message itself. It never throws, because an error in `chat.message` would cost the person their prompt.
import { mkdir, rename, stat, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { homedir } from "node:os";
import { join } from "node:path";

const INSTALLED = {}; // `omg install opencode` writes the home and the command here
const DEADLINE_MS = 150;
const HOME = INSTALLED.home ?? process.env.OMG_HOME ?? join(homedir(), ".openclaw", "omg");
const DATA = process.env.XDG_DATA_HOME ?? join(homedir(), ".local", "share");
const DATABASE = join(DATA, "opencode", "opencode.db");

/** The daemon's text for this prompt; "" if the daemon does not answer in time. */
function ask(body) {
  return new Promise((done) => {
    const late = setTimeout(() => (req.destroy(), done("")), DEADLINE_MS);
    const finish = (text) => (clearTimeout(late), done(text));
    const options = { socketPath: join(HOME, "omg.sock"), path: "/host", method: "POST", agent: false };
    const req = request(options, (res) => {
      let said = "";
      res.on("data", (chunk) => (said += chunk));
      res.on("error", () => finish(""));
      res.on("end", () => {
        try {
          finish(res.statusCode === 200 ? (JSON.parse(said).text ?? "") : "");
        } catch {
          finish("");
        }
      });
    });
    req.on("error", () => finish(""));
    req.end(JSON.stringify(body));
  });
}

/** Write a mark, renamed into place. The daemon then reads the session from OpenCode's database. */
async function mark(event, session, cwd) {
  const folder = join(HOME, "spool", "hosts");
  await stat(HOME); // throws if the home was removed, so that no new home is made
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const at = Date.now();
  const name = `${String(at).padStart(15, "0")}-${process.pid}-${session}.json`;
  const value = { host: "opencode", event, at_ms: at, size: at, session, transcript: DATABASE, cwd };
  await writeFile(join(folder, `.${name}`), JSON.stringify(value), { mode: 0o600 });
  await rename(join(folder, `.${name}`), join(folder, name));
}

export const OMG = async ({ directory }) => {
  const open = new Set(); // marks being written: OpenCode does not await `event`, but it awaits `dispose`
  const leave = (event, session) => {
    const writing = mark(event, session, directory).catch(() => {}).finally(() => open.delete(writing));
    open.add(writing);
  };
  return {
    config: async (config) => {
      if (!INSTALLED.command) return;
      const command = [...INSTALLED.command, "mcp", "--host", "opencode"];
      const ours = { type: "local", command, environment: { OMG_HOME: HOME }, enabled: true };
      config.mcp = { omg: ours, ...config.mcp };
    },
    "chat.message": async ({ sessionID: session }, output) => {
      try {
        const typed = output.parts.filter((part) => part.type === "text" && !part.synthetic);
        const prompt = typed.map((part) => part.text).join("\n");
        const body = { host: "opencode", event: "prompt", session, cwd: directory, transcript: DATABASE, prompt };
        const text = await ask(body);
        if (!text) return;
        const last = output.parts.at(-1)?.id ?? "prt_";
        const part = { id: `${last}z`, sessionID: session, messageID: output.message.id };
        output.parts.push({ ...part, type: "text", text, synthetic: true });
      } catch {
        // the prompt continues without memory
      }
    },
    event: async ({ event }) => {
      const session = event?.properties?.sessionID;
      if (!session) return;
      if (event.type === "session.idle") leave("turn", session);
      if (event.type === "session.compacted") leave("compact", session);
    },
    dispose: async () => void (await Promise.all(open)),
  };
};
