import { expect, test } from "bun:test";
import { Type } from "typebox";
import { systemClock } from "../../kernel/clock.ts";
import type { Logger } from "../../kernel/logger.ts";
import { ANONYMOUS } from "../access/principal.ts";
import { createCors } from "./cors.ts";
import type { Endpoint } from "./endpoint.ts";
import type { RequestBasics } from "./exchange/request-context.ts";
import { createHttp } from "./http.ts";
import { mountEndpoints } from "./mount.ts";
import { createServer } from "./server.ts";

const declared = ([path, handle]: [string, Endpoint["handle"]]): Endpoint => ({
  route: `GET /${path.slice(1)}`,
  declaration: { tag: "System", summary: "x", caller: "open", place: "none", answers: { 200: Type.Unknown() } },
  handle,
});

/** Creates a server with these GET endpoints, where every request comes from 203.0.113.9. */
function serve(handlers: { [path: `/${string}`]: Endpoint["handle"] }) {
  const logged: { message: string; facts: Record<string, unknown> | undefined }[] = [];
  const logger: Logger = { info() {}, warn() {}, error: (message, facts) => void logged.push({ message, facts }) };
  const received = new WeakSet<Request>();
  const cors = createCors();
  const http = createHttp({
    principals: {
      showsKey: () => false,
      isKeyHolder: () => false,
      isPresent: () => false,
      requirePresent() {},
      ofTicket: () => null,
      requireUsable() {},
      ofHeaders: () => ANONYMOUS,
      ofToken: () => Promise.reject(new Error("nobody sends a token here")),
    },
    cors,
    clock: systemClock,
    logger,
    bodyMaxBytes: 1000,
    globalLimit: () => {},
    addressOf: (request) => (received.has(request) ? "203.0.113.9" : "127.0.0.1"),
    holdOpen() {},
  });
  const server = createServer(http, cors);
  mountEndpoints(server, http, Object.entries(handlers).map(declared));
  return {
    logged,
    async fetch(path: string, init?: RequestInit): Promise<Response> {
      const request = new Request(`http://localhost${path}`, init);
      received.add(request);
      return server.fetch(request);
    },
  };
}

test("[HT4] an unexpected error tells the client a request id, and the log the cause", async () => {
  const cause = new Error("SELECT secret FROM /var/lib/somewhere");
  const { fetch, logged } = serve({
    "/now": () => {
      throw cause;
    },
    "/later": async () => {
      await Promise.resolve();
      throw cause;
    },
    "/unserialisable": () => ({ value: 1n }),
  });
  for (const path of ["/now", "/later", "/unserialisable"]) {
    logged.length = 0;
    const response = await fetch(path);
    expect([path, response.status]).toEqual([path, 500]);
    expect(await response.json()).toEqual({ code: 500, message: "Internal error" });
    const requestId = response.headers.get("x-request-id");
    expect(requestId).not.toBeNull();
    expect(logged).toHaveLength(1);
    expect(logged[0]?.facts).toMatchObject({ requestId, method: "GET", url: path });
    if (path !== "/unserialisable") expect(logged[0]?.facts?.["cause"]).toBe(cause);
  }
});

test("[HT6] [HT11] HEAD counts for the same address as GET", async () => {
  const addresses: string[] = [];
  const { fetch } = serve({
    "/where": ({ address }: RequestBasics) => {
      addresses.push(address());
      return {};
    },
  });
  expect((await fetch("/where")).status).toBe(200);
  const head = await fetch("/where", { method: "HEAD" });
  expect([head.status, await head.text()]).toEqual([200, ""]);
  expect(addresses).toEqual(["203.0.113.9", "203.0.113.9"]);
});
