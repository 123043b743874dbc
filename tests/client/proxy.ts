import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

/** Fate of a request: it is passed on; the connection is cut before it, or after it was answered; or it is answered. */
export type Fate =
  | "pass"
  | "cut before"
  | "cut after"
  | { status: number; headers?: Record<string, string>; body?: unknown };

export interface Proxied {
  method: string;
  path: string;
  headers: IncomingMessage["headers"];
}

/** A proxy that decides about each request, in order. */
export interface TestProxy {
  readonly url: string;
  readonly requests: readonly Proxied[];
  /** Fates of the next requests; later ones pass. */
  next(...fates: Fate[]): void;
  /** Decides instead, while it is set. */
  rule: ((request: Proxied) => Fate | Promise<Fate>) | null;
  stop(): Promise<void>;
}

export async function testProxy(target: string): Promise<TestProxy> {
  const requests: Proxied[] = [];
  const fates: Fate[] = [];
  const server = createServer(async (request, response) => {
    const { method = "GET", url: path = "/", headers } = request;
    const chunks: Uint8Array[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const proxied = { method, path, headers };
    requests.push(proxied);
    // Clients may send a request again by themselves when a connection that they keep is lost.
    response.shouldKeepAlive = false;
    const fate = proxy.rule === null ? (fates.shift() ?? "pass") : await proxy.rule(proxied);
    if (fate === "cut before") return request.socket.destroy();
    if (typeof fate === "object") {
      response.writeHead(fate.status, { "content-type": "application/json", ...fate.headers });
      return response.end(JSON.stringify(fate.body ?? { code: fate.status, message: "Refused by the proxy" }));
    }
    const { host: _host, connection: _connection, ...passed } = headers;
    const body = method === "GET" ? null : new Uint8Array(Buffer.concat(chunks));
    const answer = await fetch(target + path, { method, headers: passed as Record<string, string>, body });
    const content = new Uint8Array(await answer.arrayBuffer());
    if (fate === "cut after") return request.socket.destroy();
    const kept = [...answer.headers].filter(
      ([name]) => !/^(?:content-encoding|content-length|transfer-encoding)$/.test(name),
    );
    response.writeHead(answer.status, Object.fromEntries(kept));
    return response.end(content);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const proxy: TestProxy = {
    // A server that listens on TCP has such an address.
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    rule: null,
    next: (...more) => void fates.push(...more),
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return proxy;
}
