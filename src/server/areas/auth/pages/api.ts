import { isJsonObject, type JsonObject } from "../../../../kernel/json/json.ts";
import { codesFor } from "../endpoints/parts.ts";
import type { CodeFor } from "../sessions/deps.ts";

/** Dependencies of the pages on their server. */
export interface OwnServer {
  /** Answers a request as if it had come from outside. */
  answer(request: Request): Promise<Response>;
  /** Treats `copy` as `original`: same address, same connection. Returns the copy. */
  inPlaceOf(original: Request, copy: Request): Request;
}

export interface ApiCall {
  body?: JsonObject;
  /** Bytes in place of a body of JSON. */
  bytes?: { content: Uint8Array<ArrayBuffer>; contentType: string };
  accessToken?: string | null;
  /** The application that is to get a code. */
  codeFor?: CodeFor | null;
}

export interface ApiAnswer {
  status: number;
  ok: boolean;
  headers: Headers;
  body: JsonObject;
}

const PASSED_ON = ["user-agent", "accept-language"] as const;

/**
 * Calls an endpoint of this server for the sender of `original`: the pages have no rights and no checks of their own, so limits,
 * CAPTCHA, rules and the audit log are those of every client.
 */
export async function callApi(
  { answer, inPlaceOf }: OwnServer,
  original: Request,
  target: `${"GET" | "POST" | "PUT" | "PATCH" | "DELETE"} /api/${string}`,
  { body, bytes, accessToken = null, codeFor = null }: ApiCall = {},
): Promise<ApiAnswer> {
  const [method = "GET", path = "/"] = target.split(" ", 2);
  const headers = new Headers();
  for (const name of PASSED_ON) {
    const value = original.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  if (accessToken !== null) headers.set("authorization", `Bearer ${accessToken}`);
  const content = bytes?.content ?? (body === undefined ? null : JSON.stringify(body));
  if (content !== null) headers.set("content-type", bytes?.contentType ?? "application/json");
  const init = content === null ? { method, headers } : { method, headers, body: content };
  const request = inPlaceOf(original, new Request(new URL(path, original.url).href, init));
  if (codeFor !== null) codesFor.set(request, codeFor);
  const answered = await answer(request);
  const { status, ok } = answered;
  const isJson = answered.headers.get("content-type")?.startsWith("application/json") === true;
  const value: unknown = isJson ? await answered.json() : null;
  if (!isJson) await answered.body?.cancel();
  return { status, ok, headers: answered.headers, body: isJsonObject(value) ? value : {} };
}
