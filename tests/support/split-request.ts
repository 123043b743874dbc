import { connect } from "node:net";

/** Request whose body is sent in two parts. */
export interface SplitRequest {
  /** Sends the rest. Returns the status of the response; NaN without one. */
  end(rest: string): Promise<number>;
  /** Resolves when the beginning is with the server's system. */
  readonly sent: Promise<void>;
  /** Status of a response that does not wait for the rest. */
  readonly answered: Promise<number>;
  /** Breaks the connection. */
  drop(): void;
}

/** Posts a JSON body, of which `begin` is sent at once; `restBytes`: length of what `end` will send. */
export function postInTwo(
  url: string,
  {
    method = "POST",
    headers,
    begin,
    restBytes,
  }: { method?: string; headers: Readonly<Record<string, string>>; begin: string; restBytes: number },
): SplitRequest {
  const { hostname, port, pathname, search } = new URL(url);
  const socket = connect(Number(port), hostname);
  const ended = new Promise((resolve) => socket.once("close", resolve));
  // A server that answers early closes while the rest is being written; the answer counts.
  socket.on("error", () => {});
  let answer = "";
  const { promise: answered, resolve } = Promise.withResolvers<number>();
  const status = (): number => Number(/^HTTP\/1.1 (\d+)/.exec(answer)?.[1]);
  socket.on("data", (bytes) => {
    answer += bytes.toString("latin1");
    resolve(status());
  });
  const length = Buffer.byteLength(begin) + restBytes;
  const own = { host: "x", connection: "close", "content-type": "application/json", "content-length": String(length) };
  const lines = Object.entries({ ...own, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  const sent = new Promise<void>((done) => {
    socket.write(`${method} ${pathname}${search} HTTP/1.1\r\n${lines.join("")}\r\n${begin}`, () => done());
  });
  return {
    answered,
    sent,
    drop: () => void socket.destroy(),
    async end(rest) {
      socket.write(rest);
      await ended;
      return status();
    },
  };
}

/**
 * Waits until the server has begun with the request, whose credentials it knows already: without waiting for anything, it has read the
 * request when it answers others that were sent later. It accepts the connection in the turn of the first of these at the latest, and
 * reads it before the second.
 */
export async function begun({ sent }: SplitRequest, platform: { get(path: string): Promise<unknown> }): Promise<void> {
  await sent;
  for (let turn = 0; turn < 3; turn++) await platform.get("/api/health");
}
