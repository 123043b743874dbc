import { ParseError } from "elysia";
import { type AppError, badRequest, tooLarge } from "../../../../kernel/errors.ts";
import type { JsonValue } from "../../../../kernel/json/json.ts";
import { clientNetwork } from "../../../../kernel/network/addresses.ts";
import type { Principal } from "../../../access/principal.ts";
import type { BodyRules } from "../../../http/bodies/arriving-json.ts";
import { isBodyAbsent, readJson, refuseCoding } from "../../../http/bodies/body.ts";
import { parseJsonBody } from "../../../http/bodies/json-body.ts";
import { Query } from "../../../http/bodies/query.ts";
import type { HttpParts } from "../../../http/http.ts";
import { formBody } from "../forms/form-body.ts";
import { type FormField, parseTexts, readForm } from "../forms/read-form.ts";
import { SMALL_BODY_MAX_BYTES } from "../limits.ts";
import { prototypeIn, prototypeWithin, refusePrototype } from "../values/text.ts";
import { belongsTo, type Call, callOf } from "./call.ts";

/**
 * Creates the function that returns the request for Elysia and the handler: its body has at most `maxBodySize` bytes, however it is
 * read, JSON is parsed as everywhere else, and a read fails once the caller's session, key or right has ended [HT135] [FN25].
 * Errors: 413 for a declared length.
 */
export function createBodies(http: HttpParts): (request: Request, call: Call) => Request {
  const { bodyMaxBytes } = http;
  return (request, call) => {
    const { method, headers } = request;
    if (method === "GET" || method === "HEAD") return request;
    const declared = headers.get("content-length");
    if (declared === null && headers.get("transfer-encoding") === null) return request;
    const length = declared === null ? Number.POSITIVE_INFINITY : Number(declared);
    if (declared !== null && length > bodyMaxBytes) throw over(bodyMaxBytes);
    const sender = senderOf(call.principal, call);
    call.readForm = async (fields) =>
      formBody(await parseTexts(fields, { turns: http.turns, areValuesCounted: sender !== null }));
    if (length <= SMALL_BODY_MAX_BYTES) return smallRequest(request);
    const bounded = boundedCopy(request, http, { call, sender });
    return isJson(headers) ? largeJson(bounded, { source: request, http, sender }) : largeRequest(bounded);
  };
}

/** A request whose methods replace those of `Request`, for Elysia and for handlers. */
type Own<Name extends string> = { [Method in Name]: (this: Request) => Promise<unknown> } & {
  clone: (this: Request) => unknown;
};

/** Replaces the methods of a request with a small body. `Object.assign` would cost more than reading it. */
function smallRequest(request: Request): Request {
  const own: Own<"arrayBuffer" | "blob" | "bytes" | "formData" | "json" | "text"> = request;
  own.arrayBuffer = arrayBuffer;
  own.blob = blob;
  own.bytes = bytes;
  own.formData = formData;
  own.json = smallJson;
  own.text = text;
  own.clone = cloned(smallRequest);
  return request;
}

/** Replaces the methods of a request with a large body, whose stream checks the caller's right. */
function largeRequest(request: Request): Request {
  const own: Own<"formData"> = request;
  own.formData = formData;
  own.clone = cloned(largeRequest);
  return request;
}

function largeJson(request: Request, from: { source: Request; http: HttpParts; sender: string | null }): Request {
  const own: Own<"json"> = largeRequest(request);
  own.json = async function () {
    const value = await readJson(from.source, jsonRules(from.http, from.sender));
    await callOf(this)?.arrived();
    refusePrototype(prototypeWithin(value));
    return value;
  };
  own.clone = cloned((copy) => largeJson(copy, { ...from, source: copy }));
  return request;
}

/** Creates `request.clone()`, whose copies check the caller's right too. */
const cloned = (equip: (copy: Request) => Request) =>
  function (this: Request): Request {
    // The declared return type is another library's `Request`.
    const copy = Request.prototype.clone.call(this) as Request;
    const call = callOf(this);
    return equip(call === undefined ? copy : belongsTo(call, copy));
  };

/** Wraps a method of `Request` in the check of the caller's right. Errors: those of `Call.arrived`. */
const arrived = <Read>(read: () => Promise<Read>) =>
  async function (this: Request): Promise<Read> {
    const value = await read.call(this);
    await callOf(this)?.arrived();
    return value;
  };
const arrayBuffer = arrived(Request.prototype.arrayBuffer);
const blob = arrived(Request.prototype.blob);
const bytes = arrived(Request.prototype.bytes);
const text = arrived(Request.prototype.text);

const over = (maxBytes: number): AppError => tooLarge(`The body must be at most ${maxBytes} bytes`);

const isJson = (headers: Headers): boolean =>
  /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(headers.get("content-type") ?? "");

const UTF8 = new TextDecoder("utf-8", { fatal: true });

/** Returns the sender whose memory quota a large body counts against; null for a service key. */
const senderOf = (principal: Principal, call: Call): string | null =>
  principal.kind === "serviceKey" ? null : clientNetwork(call.address);

const jsonRules = ({ bodyMaxBytes, bodies, turns }: HttpParts, sender: string | null): BodyRules => ({
  // Elysia validates the query.
  query: new Query(""),
  maxBytes: bodyMaxBytes,
  bodies,
  turns,
  sender: () => sender,
});

/** Replaces `Request.json`. Errors: 400, 415. */
async function smallJson(this: Request): Promise<JsonValue> {
  refuseCoding(this);
  const json = decoded(await bytes.call(this));
  const value = parseJsonBody(json);
  refusePrototype(prototypeIn(json, value));
  return value;
}

function decoded(read: Uint8Array): string {
  try {
    return UTF8.decode(read);
  } catch {
    throw badRequest("The body is not valid UTF-8");
  }
}

async function* small(request: Request): AsyncGenerator<Uint8Array> {
  yield await bytes.call(request);
}

/** Reads the fields of a form. Errors: 400, 413, 415. */
async function fieldsOf(request: Request): Promise<FormField[]> {
  refuseCoding(request);
  const declared = request.headers.get("content-length");
  const isSmall = declared !== null && Number(declared) <= SMALL_BODY_MAX_BYTES;
  const chunks = isSmall || request.body === null ? small(request) : request.body;
  return readForm(chunks as AsyncIterable<Uint8Array>, request.headers.get("content-type") ?? "");
}

/** Replaces `Request.formData`. */
async function formData(this: Request): Promise<FormData> {
  const form = new FormData();
  for (const [name, value] of await fieldsOf(this)) form.append(name, value);
  return form;
}

/** The format as which a body is parsed. */
export type BodyKind = "json" | "text" | "form" | "bytes";

export function kindOfBody(headers: Headers): BodyKind | null {
  const type = headers.get("content-type")?.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  if (isJson(headers)) return "json";
  if (type === "multipart/form-data" || type === "application/x-www-form-urlencoded") return "form";
  if (type.startsWith("text/")) return "text";
  return type === "application/octet-stream" ? "bytes" : null;
}

/**
 * Reads the body as Elysia passes it to schemas and handlers. `kind`: the route's; absent: by the content type, for a route without
 * parsers of its own. undefined: there is no body, its type is another one, or it has been read. Errors: Elysia's `ParseError`.
 */
export async function readBody(request: Request, kind?: BodyKind): Promise<unknown> {
  const call = callOf(request);
  if (call === undefined || call.isParsed || (kind === undefined && call.parsesItself)) return undefined;
  const { headers } = request;
  if (isBodyAbsent(request)) return undefined;
  call.isParsed = true;
  const parsedKind = kind ?? kindOfBody(headers);
  try {
    if (parsedKind !== null) refuseCoding(request);
    switch (parsedKind) {
      case "json":
        return await request.json();
      case "text":
        return decoded(await request.bytes());
      case "form":
        return await call.readForm?.(await fieldsOf(request));
      case "bytes":
        return await request.arrayBuffer();
      default:
        return undefined;
    }
  } catch (cause) {
    throw new ParseError(cause instanceof Error ? cause : undefined);
  }
}

interface Sending {
  call: Call;
  /** The sender: see `senderOf`. */
  sender: string | null;
}

/** Copies the request with a body that counts the bytes that arrive, and fails when there are too many. */
function boundedCopy(request: Request, http: HttpParts, from: Sending): Request {
  const { body } = request;
  if (body === null) return request;
  const counted = countedStream(body, http, from);
  const init = { method: request.method, headers: request.headers, signal: request.signal, body: counted };
  return http.inPlaceOf(request, new Request(request.url, init));
}

interface BodyReader {
  read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>;
  cancel(cause?: unknown): Promise<void>;
}

function countedStream(
  body: ReadableStream<Uint8Array>,
  { bodyMaxBytes, bodies }: HttpParts,
  { call, sender }: Sending,
): ReadableStream<Uint8Array> {
  // Counting starts with the first read: a handler may never read.
  let begun: ReturnType<typeof begin> | null = null;
  let refused: AppError | null = null;
  let byteCount = 0;
  const begin = () => {
    const reader: BodyReader = body.getReader();
    const held = bodies.begin(sender, (cause) => {
      refused = cause;
      void reader.cancel(cause).catch(() => {});
    });
    return { reader, held };
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        begun ??= begin();
        const { reader, held } = begun;
        try {
          const { done, value } = await reader.read();
          if (refused !== null) throw refused;
          if (done || value === undefined) {
            await call.arrived();
            held.release();
            controller.close();
            return;
          }
          byteCount += value.byteLength;
          if (byteCount > bodyMaxBytes) throw over(bodyMaxBytes);
          held.add(value.byteLength);
          controller.enqueue(value);
        } catch (cause) {
          held.release();
          void reader.cancel(cause).catch(() => {});
          controller.error(cause);
        }
      },
      async cancel(cause) {
        begun?.held.release();
        await (begun === null ? body.cancel(cause) : begun.reader.cancel(cause));
      },
    },
    { highWaterMark: 0 },
  );
}
