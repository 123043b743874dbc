import type { ElysiaAdapter } from "elysia/adapter";
import { BunAdapter } from "elysia/adapter/bun";
import { callOf } from "../requests/call.ts";

const { mapResponse, mapCompactResponse } = BunAdapter.handler;

interface Settings {
  headers: Record<string, unknown>;
  status?: unknown;
  cookie?: unknown;
}

/**
 * Elysia for Bun, with two differences. JSON and texts to which the config adds nothing get the headers that every answer has when
 * they are made, as `Call.finish` would change them at ten times the cost. And a handler's own `Response` gets the headers
 * that the config has set: Elysia would make another one of its body, which has lost the type of its content.
 */
export const ADAPTER: ElysiaAdapter = {
  ...BunAdapter,
  handler: {
    ...BunAdapter.handler,
    mapResponse(response, set, request) {
      const { status = 200 } = set;
      const isOrdinary = set.cookie === undefined && typeof status === "number";
      if (isOrdinary && !isNotEmpty(set.headers)) {
        const answer = ordinaryAnswer(response, status, request);
        if (answer !== null) return answer;
      }
      const keeps = response instanceof Response && isOrdinary && status === 200;
      return keeps ? withHeaders(response, set) : mapResponse(response, set, request);
    },
    mapCompactResponse: (response, request) =>
      ordinaryAnswer(response, 200, request) ?? mapCompactResponse(response, request),
  },
};

/** null: Elysia has to make it. */
function ordinaryAnswer(value: unknown, status: number, request: unknown): Response | null {
  const isText = typeof value === "string";
  if (!(request instanceof Request) || !(isText || isPlain(value))) return null;
  const headers = callOf(request)?.commonHeaders() ?? null;
  if (headers === null) return null;
  const init = { status, headers };
  return isText ? new Response(value, init) : Response.json(value, init);
}

function isPlain(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === Array.prototype;
}

function isNotEmpty(members: object): boolean {
  for (const _ in members) return true;
  return false;
}

function withHeaders(response: Response, { headers }: Settings): Response {
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === "string" && !response.headers.has(name)) response.headers.set(name, value);
  }
  return response;
}
