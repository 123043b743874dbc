import type { ElysiaAdapter } from "elysia/adapter";
import { BunAdapter } from "elysia/adapter/bun";
import { lateBody } from "../../../http/bodies/late-body.ts";
import { type BodyKind, readBody } from "../requests/bodies.ts";
import { callOf } from "../requests/call.ts";

const { mapResponse, mapCompactResponse } = BunAdapter.handler;

interface Settings {
  headers: Record<string, unknown>;
  status?: unknown;
  cookie?: unknown;
}

/** Returns code of a compiled route whose options set the body's format. */
const parsing = (kind: BodyKind) => (): string => `if(c.body===undefined)c.body=await readBody(c.request,"${kind}")\n`;

/**
 * Elysia's adapter for Bun, with four differences. Bodies are read within the bounds of all bodies, by their type in any spelling.
 * JSON and texts to which the config adds nothing receive the common headers when they are created, as `Call.finish` would change
 * them at ten times the cost. Long ones that awaited something are sent in one system call [HT91]. A handler's own `Response`
 * receives the headers that the config has set: Elysia would create another one from its body, which loses its content type.
 */
export const ADAPTER: ElysiaAdapter = {
  ...BunAdapter,
  composeHandler: {
    ...BunAdapter.composeHandler,
    inject: { readBody },
    parser: {
      declare: "c.body=await readBody(c.request)\n",
      json: parsing("json"),
      text: parsing("text"),
      urlencoded: parsing("form"),
      arrayBuffer: parsing("bytes"),
      formData: parsing("form"),
    },
  },
  handler: {
    ...BunAdapter.handler,
    mapResponse(response, set, request) {
      const { status = 200, headers } = set;
      const isOrdinary = set.cookie === undefined && typeof status === "number";
      const answer = isOrdinary ? ordinaryAnswer(response, { status, headers }, request) : null;
      if (answer !== null) return answer;
      const keeps = response instanceof Response && isOrdinary && status === 200;
      return keeps ? withHeaders(response, set) : mapResponse(response, set, request);
    },
    mapCompactResponse: (response, request) =>
      ordinaryAnswer(response, { status: 200, headers: {} }, request) ?? mapCompactResponse(response, request),
  },
};

/** Builds an answer with the common headers; null: Elysia has to build it. */
function ordinaryAnswer(
  value: unknown,
  { status, headers: own }: { status: number; headers: Settings["headers"] },
  request: unknown,
): Response | null {
  const isText = typeof value === "string";
  if (!(request instanceof Request) || !(isText || isPlain(value))) return null;
  const call = callOf(request);
  if (call === undefined) return null;
  const headers = isNotEmpty(own) ? null : call.commonHeaders();
  if (call.isLate) return lateAnswer(value, { status, headers, own });
  if (headers === null) return null;
  return isText ? new Response(value, { status, headers }) : Response.json(value, { status, headers });
}

/** Builds a late answer; null: a header is no text. */
function lateAnswer(
  value: string | object,
  { status, headers, own }: { status: number; headers: Headers | null; own: Settings["headers"] },
): Response | null {
  // Checked before the body is serialised, as Elysia would serialise it again.
  if (Object.values(own).some((text) => typeof text !== "string")) return null;
  const isText = typeof value === "string";
  const body = lateBody(isText ? value : JSON.stringify(value));
  const answer = new Response(body, headers === null ? { status } : { status, headers });
  answer.headers.set("content-type", isText ? "text/plain;charset=utf-8" : "application/json;charset=utf-8");
  for (const [name, text] of Object.entries(own)) answer.headers.set(name, String(text));
  return answer;
}

function isPlain(value: unknown): value is object {
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
