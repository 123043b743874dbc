import { connect, createServer, type Socket } from "node:net";

/** Proxy that simulates network failures: it forwards bytes to a server until told otherwise. */
export interface CuttingProxy {
  /** Address `http://127.0.0.1:PORT`, fixed for its lifetime. */
  readonly url: string;
  /** Number of times that `cutAfter` broke connections. */
  readonly cutCount: number;
  /** Number of connections that clients have opened. */
  readonly connectionCount: number;
  /** Breaks all connections now. */
  cut(): void;
  /** Breaks all connections each time that clients have sent this many bytes, `times` times. */
  cutAfter(bytes: number, times?: number): void;
  /** Breaks a connection instead of forwarding the server's response, this many times. */
  loseAnswers(times: number): void;
  /** While true, breaks connections at once. */
  refuse(isRefusing: boolean): void;
  /** While true, keeps connections open without forwarding anything. */
  freeze(isFrozen: boolean): void;
  stop(): Promise<void>;
}

export async function cuttingProxy(target: () => string): Promise<CuttingProxy> {
  const pairs = new Set<[Socket, Socket]>();
  let sentBytes = 0;
  let connectionCount = 0;
  let cutAfterBytes = Number.POSITIVE_INFINITY;
  let cutsLeft = 0;
  let cutCount = 0;
  let answersToLose = 0;
  let isRefusing = false;
  let isFrozen = false;
  const cut = () => {
    for (const pair of pairs) for (const socket of pair) socket.resetAndDestroy();
    pairs.clear();
  };
  const server = createServer((client) => {
    connectionCount++;
    client.on("error", () => {});
    if (isRefusing) {
      client.resetAndDestroy();
      return;
    }
    const upstream = connect(Number(new URL(target()).port), "127.0.0.1");
    const pair: [Socket, Socket] = [client, upstream];
    pairs.add(pair);
    const end = () => {
      pairs.delete(pair);
      for (const socket of pair) socket.destroy();
    };
    upstream.on("error", end);
    client.on("data", (bytes: Buffer) => {
      if (isFrozen) return;
      sentBytes += bytes.byteLength;
      if (cutsLeft > 0 && sentBytes >= cutAfterBytes) {
        sentBytes = 0;
        cutsLeft--;
        cutCount++;
        return cut();
      }
      if (!upstream.write(bytes)) client.pause();
    });
    upstream.on("drain", () => client.resume());
    upstream.on("data", (bytes) => {
      if (isFrozen) return;
      if (answersToLose > 0) {
        answersToLose--;
        return end();
      }
      client.write(bytes);
    });
    client.on("close", end);
    upstream.on("close", end);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the proxy has no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    get cutCount() {
      return cutCount;
    },
    get connectionCount() {
      return connectionCount;
    },
    cut,
    cutAfter(bytes, times = Number.POSITIVE_INFINITY) {
      sentBytes = 0;
      cutAfterBytes = bytes;
      cutsLeft = times;
    },
    loseAnswers(times) {
      answersToLose = times;
    },
    refuse(next) {
      isRefusing = next;
      if (next) cut();
    },
    freeze(next) {
      isFrozen = next;
    },
    async stop() {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
