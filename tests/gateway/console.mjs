// One connection to a running gateway, kept open: a request a line on stdin, its answer a line on stdout.
// `openclaw gateway call` does the same, and takes five seconds to start each time.
//   node console.mjs ws://127.0.0.1:PORT TOKEN '{"client": {"id": …, "mode": …}, "scopes": […], "device": true}'
//   {"id": 1, "method": "chat.send", "params": {…}}   ->   {"id": 1, "ok": true, "payload": {…}}
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { createInterface } from "node:readline";

const [url, token, as] = process.argv.slice(2);
const { client, scopes, device, origin } = JSON.parse(as);
const socket = new WebSocket(url, origin ? { headers: { origin } } : {});
const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
const ask = (id, method, params) => socket.send(JSON.stringify({ type: "req", id: String(id), method, params }));

/** A device of its own, as an app has one: a key pair, and the gateway's challenge signed with it. */
function signedDevice({ nonce, ts }) {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const key = Buffer.from(publicKey.export({ format: "jwk" }).x, "base64url");
  const id = createHash("sha256").update(key).digest("hex");
  const told = ["v3", id, client.id, client.mode, "operator", scopes.join(","), ts, token, nonce, client.platform, ""];
  const signature = sign(null, Buffer.from(told.join("|")), privateKey).toString("base64url");
  return { id, publicKey: key.toString("base64url"), signature, signedAt: ts, nonce };
}

socket.onmessage = ({ data }) => {
  const frame = JSON.parse(data);
  if (frame.event === "connect.challenge") {
    const hello = { minProtocol: 4, maxProtocol: 4, client, role: "operator", scopes, auth: { token } };
    ask("hello", "connect", { ...hello, ...(device && { device: signedDevice(frame.payload) }) });
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
