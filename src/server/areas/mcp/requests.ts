import { notFound } from "../../../kernel/errors.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { ANSWER_MAX_BYTES, ENVELOPE_BYTES } from "./limits.ts";

/** Server in which the tools are: a call is a request to it, so that it has the rights, limits and entries of every other one. */
export interface OwnServer {
  answer(request: Request): Promise<Response>;
  /** Treats `copy` as `original`: same address, same connection. Returns the copy. */
  inPlaceOf(original: Request, copy: Request): Request;
}

/** Request of a tool. `path`: its segments, which are encoded. */
export interface ToolRequest {
  method: "GET" | "POST" | "PATCH" | "DELETE";
  path: readonly string[];
  query?: Readonly<Record<string, string | number | undefined>>;
  body?: JsonValue;
}

/** Answer to a request; `text` is null if it has more than fits into an answer. */
export interface Asked {
  status: number;
  text: string | null;
}

/** Sends a request with the caller's credentials. Errors: 404 for a segment that names nothing. */
export async function ask(
  server: OwnServer,
  original: Request,
  credentials: Headers,
  { method, path, query = {}, body }: ToolRequest,
): Promise<Asked> {
  // Such a segment would lead to another endpoint.
  const wrong = path.find((segment) => ["", ".", ".."].includes(segment));
  if (wrong !== undefined) throw notFound(`There is nothing named "${wrong}"`);
  const url = new URL(`/${path.map(encodeURIComponent).join("/")}`, original.url);
  for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, String(value));
  const headers = new Headers(credentials);
  if (body !== undefined) headers.set("content-type", "application/json");
  const init = body === undefined ? { method, headers } : { method, headers, body: JSON.stringify(body) };
  const answered = await server.answer(server.inPlaceOf(original, new Request(url.href, init)));
  return { status: answered.status, text: await textWithin(answered) };
}

/** Whether a text fits into an answer, in which its quotes and line ends are escaped. */
export const fits = (text: string): boolean =>
  text.length <= ANSWER_MAX_BYTES && Buffer.byteLength(JSON.stringify(text)) <= ANSWER_MAX_BYTES - ENVELOPE_BYTES;

/** Reads a body that fits into an answer; null for a longer one, of which no more is read. */
async function textWithin({ body }: Response): Promise<string | null> {
  if (body === null) return "";
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const reader = body.getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    chunks.push(read.value);
    bytes += read.value.byteLength;
    if (bytes > ANSWER_MAX_BYTES) {
      await reader.cancel();
      return null;
    }
  }
  const text = Buffer.concat(chunks).toString();
  return fits(text) ? text : null;
}
