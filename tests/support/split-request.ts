import { connect } from "node:net";

/** Request whose body is sent in two parts. */
export interface SplitRequest {
  /** Sends the rest. Returns the status of the response; NaN without one. */
  end(rest: string): Promise<number>;
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
  socket.write(`${method} ${pathname}${search} HTTP/1.1\r\n${lines.join("")}\r\n${begin}`);
  return {
    answered,
    drop: () => void socket.destroy(),
    async end(rest) {
      socket.write(rest);
      await ended;
      return status();
    },
  };
}
