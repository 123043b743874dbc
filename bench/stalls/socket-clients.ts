/**
 * WebSocket clients that send their messages, and may or may not read responses, in a separate process with a low priority. Run
 * as a child with IPC: the first message is a `SocketsJob`; it answers with a `SocketsReport` when the time is over.
 */
import { connect, type Socket } from "node:net";
import { setPriority } from "node:os";

export interface SocketsJob {
  /** Origin `http://host:port` of the server. */
  origin: string;
  path: string;
  count: number;
  /** Messages sent once, in order, as soon as the socket is open. */
  hello: readonly unknown[];
  /** Message sent repeatedly; null for none. */
  repeat: unknown;
  repeatEveryMs: number;
  /** Whether the clients read. With false, they stop reading one second after opening. */
  reads: boolean;
  durationMs: number;
}

export interface SocketsReport {
  opened: number;
  /** Number of connections that the server closed early. */
  closed: number;
}

const LOW_PRIORITY = 10;
const OPENED_AT_ONCE = 5;
const GREETING_MS = 1_000;
const MASK = Buffer.from([1, 2, 3, 4]);

/** Encodes a text frame, masked as a client's must be. */
function frame(message: unknown): Buffer {
  const payload = Buffer.from(JSON.stringify(message));
  const header =
    payload.length < 126
      ? Buffer.from([0x81, 0x80 | payload.length])
      : payload.length < 65_536
        ? Buffer.from([0x81, 0x80 | 126, payload.length >> 8, payload.length & 0xff])
        : Buffer.concat([Buffer.from([0x81, 0x80 | 127, 0, 0, 0, 0]), uint32(payload.length)]);
  for (let index = 0; index < payload.length; index++) {
    payload[index] = (payload[index] ?? 0) ^ (MASK[index & 3] ?? 0);
  }
  return Buffer.concat([header, MASK, payload]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function open(job: SocketsJob): Promise<Socket | null> {
  const { hostname, port, host } = new URL(job.origin);
  const socket = connect(Number(port), hostname);
  const { promise, resolve } = Promise.withResolvers<Socket | null>();
  socket.on("error", () => resolve(null));
  socket.on("close", () => resolve(null));
  socket.once("data", (answer) => resolve(answer.toString("latin1").startsWith("HTTP/1.1 101") ? socket : null));
  const headers = [
    `GET ${job.path} HTTP/1.1`,
    `Host: ${host}`,
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  ];
  socket.write(`${headers.join("\r\n")}\r\n\r\n`);
  return promise;
}

async function run(job: SocketsJob): Promise<SocketsReport> {
  const endAt = performance.now() + job.durationMs;
  const hello = job.hello.map(frame);
  const repeat = job.repeat === null ? null : frame(job.repeat);
  const sockets = new Set<Socket>();
  let started = 0;
  let opened = 0;
  let closed = 0;
  const visit = async (): Promise<void> => {
    while (started++ < job.count && performance.now() < endAt) {
      const socket = await open(job);
      if (socket === null) continue;
      opened += 1;
      sockets.add(socket);
      socket.on("close", () => {
        if (performance.now() < endAt) closed += 1;
      });
      for (const one of hello) socket.write(one);
      if (job.reads) socket.resume();
      else setTimeout(() => socket.pause(), GREETING_MS);
      await Bun.sleep(1);
    }
  };
  await Promise.all(Array.from({ length: OPENED_AT_ONCE }, visit));
  const timer = setInterval(() => {
    if (repeat !== null) for (const socket of sockets) socket.write(repeat);
  }, job.repeatEveryMs);
  await Bun.sleep(Math.max(0, endAt - performance.now()));
  clearInterval(timer);
  for (const socket of sockets) socket.destroy();
  return { opened, closed };
}

setPriority(LOW_PRIORITY);
process.on("message", async (message) => {
  process.send?.(await run(message as SocketsJob)); // measure.ts sends this.
  process.exit(0);
});
