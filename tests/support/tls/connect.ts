import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

/** Opens a raw connection to a server under test, with TLS for an https address, to send what no HTTP client would. */
export function connectTo(url: string, onConnect: () => void = () => {}): Socket {
  const { protocol, hostname, port } = new URL(url);
  const address = { host: hostname, port: Number(port) };
  return protocol === "https:"
    ? connectTls({ ...address, rejectUnauthorized: false }, onConnect)
    : connect(address, onConnect);
}
