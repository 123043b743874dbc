import type { Principal } from "../../access/principal.ts";
import { type BodyRules, readJson } from "../../http/bodies/body.ts";
import { parseJsonBody } from "../../http/bodies/json-body.ts";
import { Query } from "../../http/exchange/query.ts";
import type { HttpParts } from "../../http/http.ts";
import { clientNetwork } from "../../kernel/client-network.ts";
import { AppError, badRequest, tooLarge } from "../../kernel/errors.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { FORM_FIELDS_MAX, FORM_INDEX_MAX, SMALL_BODY_MAX_BYTES } from "../limits.ts";
import { type Call, callOf } from "./call.ts";

/**
 * The request that Elysia and the handler see: its body has `maxBodySize` bytes at most, however it is read, JSON is read as
 * everywhere else, and who reads it when the caller's session, key or right has ended gets an error [HT135] [FN25]. Errors: 413 for
 * a declared length.
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
    if (length <= SMALL_BODY_MAX_BYTES) return smallRequest(request);
    const sender = senderOf(call.principal, call);
    const bounded = boundedCopy(request, http, { call, sender });
    const own: Own<"formData" | "json"> = bounded;
    own.formData = checkedForm;
    if (isJson(headers)) {
      own.json = async () => {
        const value = await readJson(request, jsonRules(http, sender));
        await call.arrived();
        return value;
      };
    }
    return bounded;
  };
}

/** A request with methods of its own instead of those of `Request`, for Elysia and for handlers. */
type Own<Name extends string> = { [Method in Name]: () => Promise<unknown> };

/** `Object.assign` would cost more than reading the body. */
function smallRequest(request: Request): Request {
  const own: Own<"arrayBuffer" | "blob" | "bytes" | "formData" | "json" | "text"> = request;
  own.arrayBuffer = arrayBuffer;
  own.blob = blob;
  own.bytes = bytes;
  own.formData = checkedForm;
  own.json = smallJson;
  own.text = text;
  return request;
}

/** A method of `Request`. Errors: those of `Call.arrived`. */
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

/** Whose memory a large body counts as; null for a service key. */
const senderOf = (principal: Principal, call: Call): string | null =>
  principal.kind === "serviceKey" ? null : clientNetwork(call.address);

const jsonRules = ({ bodyMaxBytes, bodies, turns }: HttpParts, sender: string | null): BodyRules => ({
  // Elysia judges the query.
  query: new Query(""),
  maxBytes: bodyMaxBytes,
  bodies,
  turns,
  sender: () => sender,
});

/** Instead of `Request.json`. Errors: 400. */
async function smallJson(this: Request): Promise<JsonValue> {
  const read = await bytes.call(this);
  let json: string;
  try {
    json = UTF8.decode(read);
  } catch {
    throw badRequest("The body is not valid UTF-8");
  }
  return parseJsonBody(json);
}

/**
 * Instead of `Request.formData`. Elysia makes lists of names such as `items[7]`: one with a billion entries must not come to be.
 * Errors: 400, 413.
 */
async function checkedForm(this: Request): Promise<unknown> {
  let form: Awaited<ReturnType<Request["formData"]>>;
  try {
    form = await Request.prototype.formData.call(this);
  } catch (cause) {
    throw cause instanceof AppError ? cause : badRequest("The body is not a valid form");
  }
  await callOf(this)?.arrived();
  let count = 0;
  for (const name of form.keys()) {
    if (++count > FORM_FIELDS_MAX) throw badRequest(`A form has at most ${FORM_FIELDS_MAX} fields`);
    for (const [, index = ""] of name.matchAll(/\[(\d+)\]/g)) {
      if (Number(index) > FORM_INDEX_MAX) throw badRequest(`An index of a form's field is at most ${FORM_INDEX_MAX}`);
    }
  }
  return form;
}

interface Sending {
  call: Call;
  /** See `senderOf`. */
  sender: string | null;
}

/** A copy of the request whose body counts what arrives, and ends with an error when that is too much. */
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
  // Nothing counts before somebody reads: a handler may never do so.
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
