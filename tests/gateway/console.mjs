// One connection to a running gateway, kept open: a request a line on stdin, its answer a line on stdout.
// `openclaw gateway call` does the same, and takes five seconds to start each time.
//   node console.mjs ws://127.0.0.1:PORT TOKEN
//   {"id": 1, "method": "chat.send", "params": {…}}   ->   {"id": 1, "ok": true, "payload": {…}}
import { createInterface } from "node:readline";

const [url, token] = process.argv.slice(2);
const socket = new WebSocket(url);
const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
const ask = (id, method, params) => socket.send(JSON.stringify({ type: "req", id: String(id), method, params }));

socket.onmessage = ({ data }) => {
  const frame = JSON.parse(data);
  if (frame.event === "connect.challenge") {
    // The reserved loopback helper: the one client that keeps its scopes without a paired device.
    const client = { id: "gateway-client", version: "1", platform: process.platform, mode: "backend" };
    const scopes = ["operator.read", "operator.write", "operator.admin", "operator.approvals"];
    ask("hello", "connect", { minProtocol: 4, maxProtocol: 4, client, role: "operator", scopes, auth: { token } });
  } else if (frame.type === "res") {
    say({ id: frame.id === "hello" ? 0 : Number(frame.id), ok: frame.ok, payload: frame.payload, error: frame.error });
  }
};
socket.onclose = ({ code, reason }) => {
  say({ closed: `${code} ${reason}` });
  process.exit(0);
};
socket.onerror = () => {}; // `close` follows, and says why
createInterface({ input: process.stdin })
  .on("line", (line) => {
    const { id, method, params } = JSON.parse(line);
    ask(id, method, params);
  })
  .on("close", () => socket.close());
