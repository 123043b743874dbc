import type { Principal } from "../../access/principal.ts";
import { type BodyRules, readJson } from "../../http/bodies/body.ts";
import { parseJsonBody } from "../../http/bodies/json-body.ts";
import { Query } from "../../http/exchange/query.ts";
import type { HttpParts } from "../../http/http.ts";
import { clientNetwork } from "../../kernel/client-network.ts";
import { type AppError, badRequest, tooLarge } from "../../kernel/errors.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { FORM_FIELDS_MAX, FORM_INDEX_MAX, SMALL_BODY_MAX_BYTES } from "../limits.ts";
import { type Call, callOf } from "./call.ts";

/**
 * The request that Elysia and the handler see: its body has `maxBodySize` bytes at most, however it is read, and JSON is read as
 * everywhere else. Errors: 413 for a declared length.
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
    if (length <= SMALL_BODY_MAX_BYTES) return readBy(request, smallJson);
    const sender = senderOf(call.principal, call);
    const bounded = boundedCopy(request, http, sender);
    const json = async (): Promise<unknown> => {
      const value = await readJson(request, jsonRules(http, sender));
      call.requirePresent();
      return value;
    };
    return readBy(bounded, isJson(headers) ? json : undefined);
  };
}

/** Own methods instead of those of `Request`, for Elysia and for handlers. `Object.assign` would cost more than reading the body. */
function readBy(request: Request, json: (() => Promise<unknown>) | undefined): Request {
  const own = request as { json: () => Promise<unknown>; formData: () => Promise<unknown> };
  if (json !== undefined) own.json = json;
  own.formData = checkedForm;
  return request;
}

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
  const bytes = await this.bytes();
  callOf(this)?.requirePresent();
  let text: string;
  try {
    text = UTF8.decode(bytes);
  } catch {
    throw badRequest("The body is not valid UTF-8");
  }
  return parseJsonBody(text);
}

/**
 * Instead of `Request.formData`. Elysia makes lists of names such as `items[7]`: one with a billion entries must not come to be.
 * Errors: 400.
 */
async function checkedForm(this: Request): Promise<unknown> {
  let form: Awaited<ReturnType<Request["formData"]>>;
  try {
    form = await Request.prototype.formData.call(this);
  } catch {
    throw badRequest("The body is not a valid form");
  }
  let count = 0;
  for (const name of form.keys()) {
    if (++count > FORM_FIELDS_MAX) throw badRequest(`A form has at most ${FORM_FIELDS_MAX} fields`);
    for (const [, index = ""] of name.matchAll(/\[(\d+)\]/g)) {
      if (Number(index) > FORM_INDEX_MAX) throw badRequest(`An index of a form's field is at most ${FORM_INDEX_MAX}`);
    }
  }
  return form;
}

/** A copy of the request whose body counts what arrives, and ends with an error when that is too much. */
function boundedCopy(request: Request, http: HttpParts, sender: string | null): Request {
  const { body } = request;
  if (body === null) return request;
  const counted = countedStream(body, http, sender);
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
  sender: string | null,
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
