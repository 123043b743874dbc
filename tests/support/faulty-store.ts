import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Random } from "./random.ts";
import { type S3Server, startS3Server } from "./s3-server.ts";

/**
 * Faults of an object store: an internal error, throttling, a clock that is too far off, a connection that dies before the request
 * counts, or after the object was stored; and lists that lag behind.
 */
export const FAULTS = ["internal", "throttled", "skewed", "dies-before", "dies-after", "lagging-list"] as const;
export type Fault = (typeof FAULTS)[number];

export interface FaultyStore {
  readonly endpoint: string;
  readonly store: S3Server;
  /** Share of the requests that meet a fault. */
  chance: number;
  /** Number of each fault so far. */
  readonly met: Record<Fault, number>;
  stop(): Promise<void>;
}

const ERRORS: Partial<Record<Fault, [status: number, code: string]>> = {
  internal: [500, "InternalError"],
  throttled: [503, "SlowDown"],
  skewed: [403, "RequestTimeTooSkewed"],
};

// A connection is ended by its socket: `response.destroy()` sends a 200 without a body in Bun.

async function bodyOf(request: IncomingMessage): Promise<Buffer<ArrayBuffer>> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}

/** Starts an object store that meets faults at random. */
export async function startFaultyStore(bucket: string, random: Random): Promise<FaultyStore> {
  const store = startS3Server(bucket);
  const met: FaultyStore["met"] = {
    internal: 0,
    throttled: 0,
    skewed: 0,
    "dies-before": 0,
    "dies-after": 0,
    "lagging-list": 0,
  };
  const lists = new Map<string, Buffer>();

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await bodyOf(request);
    const { method = "GET", url = "/" } = request;
    const fault = random.chance(state.chance) ? random.pick(FAULTS) : null;
    if (fault !== null) met[fault]++;
    const error = fault === null ? undefined : ERRORS[fault];
    if (error !== undefined) {
      response.writeHead(error[0]).end(`<Error><Code>${error[1]}</Code><Message>at random</Message></Error>`);
      return;
    }
    if (fault === "dies-before") {
      request.socket.destroy();
      return;
    }
    // The store looks at these only.
    const headers = new Headers();
    for (const name of ["authorization", "range", "if-match", "if-none-match"]) {
      const value = request.headers[name];
      if (typeof value === "string") headers.set(name, value);
    }
    const hasBody = method === "PUT" || method === "POST";
    const stored = await fetch(store.endpoint + url, { method, headers, ...(hasBody ? { body } : {}) });
    const content = Buffer.from(await stored.arrayBuffer());
    const isList = url.includes("list-type=2");
    const former = lists.get(url);
    if (isList) lists.set(url, content);
    if (fault === "dies-after") {
      request.socket.destroy();
      return;
    }
    const etag = stored.headers.get("etag");
    response.writeHead(stored.status, etag === null ? {} : { etag });
    response.end(isList && fault === "lagging-list" ? (former ?? content) : content);
  }

  const server = createServer(
    (request, response) => void answer(request, response).catch(() => request.socket.destroy()),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // Listens on a port.
  const { port } = server.address() as AddressInfo;
  const state: FaultyStore = {
    endpoint: `http://127.0.0.1:${port}`,
    store,
    chance: 0,
    met,
    async stop() {
      server.closeAllConnections();
      server.close();
      await store.stop();
    },
  };
  return state;
}
