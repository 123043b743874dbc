import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

/** A connection to a server under test, for what no HTTP client would send: with TLS where its address begins with https. */
export function connectTo(url: string, onConnect: () => void = () => {}): Socket {
  const { protocol, hostname, port } = new URL(url);
  const address = { host: hostname, port: Number(port) };
  return protocol === "https:"
    ? connectTls({ ...address, rejectUnauthorized: false }, onConnect)
    : connect(address, onConnect);
}
