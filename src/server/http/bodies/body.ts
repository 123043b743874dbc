import { AppError, badRequest, unsupportedMediaType } from "../../../kernel/errors.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { nextTurn } from "../../../kernel/time/scheduler.ts";
import { BYTES_PER_TURN_MAX, CHUNKS_PER_TURN_MAX, SMALL_BODY_MAX_BYTES } from "../limits.ts";
import { ArrivingJson, type BodyRules, over } from "./arriving-json.ts";
import { parseInSteps, parseJsonBody, refusalOf } from "./json-body.ts";

/** Decodes whole texts; holds no state between them. */
const UTF8 = new TextDecoder("utf-8", { fatal: true });

/** Reads the body as JSON. Errors: 400 for an unknown query parameter, 415 for another or no content type, 413, 400 for invalid JSON. */
export async function readJson(request: Request, rules: BodyRules): Promise<JsonValue> {
  assertJson(request, rules);
  const body = streamOf(request);
  try {
    if (body !== null) return await readLarge(body, rules, (blocks) => rules.turns.run(parseInSteps(blocks)));
    const bytes = await request.bytes();
    rules.digest?.update(bytes);
    return parseJsonBody(UTF8.decode(bytes));
  } catch (cause) {
    throw refusalOf(cause);
  }
}

/**
 * Reads the bytes of a JSON body over `SMALL_BODY_MAX_BYTES`, for handlers that have it parsed in another process
 * (`parseJsonObjectBytes`); null for a smaller one. Errors: those of `readJson`, except the ones of parsing.
 */
export async function readLargeBody(request: Request, rules: BodyRules): Promise<Uint8Array<ArrayBuffer>[] | null> {
  assertJson(request, rules);
  const body = streamOf(request);
  if (body === null) return null;
  try {
    return await readLarge(body, rules, async (blocks) => blocks);
  } catch (cause) {
    throw refusalOf(cause);
  }
}

/** Reads a body for its digest alone. Errors: 413 for a body that is too large or has too many values. */
export async function readUnparsed(request: Request, rules: BodyRules): Promise<void> {
  const body = streamOf(request);
  try {
    if (body === null) rules.digest?.update(await request.bytes());
    else await readLarge(body, rules, async () => {});
  } catch (cause) {
    throw refusalOf(cause);
  }
}

/**
 * Checks the query, the content type and the declared length. Errors: 400 for an unknown query parameter, 415, 413 for a declared
 * length.
 */
function assertJson(request: Request, { query, maxBytes }: BodyRules): void {
  const { headers } = request;
  query.assertValid();
  refuseCoding(request);
  const contentType = headers.get("content-type");
  if (contentType === null || !/^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(contentType)) {
    throw unsupportedMediaType(`The body must be application/json, got ${contentType ?? "no content type"}`);
  }
  const declared = headers.get("content-length");
  if (declared !== null && Number(declared) > maxBytes) throw over(maxBytes);
}

/** Returns the body's stream; null where there is no body, or a small one, which is quicker to read at once. */
function streamOf(request: Request): Request["body"] {
  // The server reads no further than the declared length.
  const declared = request.headers.get("content-length");
  return declared !== null && Number(declared) <= SMALL_BODY_MAX_BYTES ? null : request.body;
}

/** Refuses a compressed body: a small one can decompress to any size. Errors: 415. [HT23] */
export function refuseCoding({ headers }: Request): void {
  const coding = headers.get("content-encoding");
  if (coding === null || /^\s*(?:identity)?\s*$/i.test(coding)) return;
  throw new AppError(415, `The body must be sent without Content-Encoding, got ${coding}`, {
    headers: { "accept-encoding": "identity" },
  });
}

/** Refuses a request with a body. Errors: 400. [HT141] */
export function refuseBody(request: Request): void {
  if (!isBodyAbsent(request)) throw badRequest(`${request.method} takes no body here; send none`);
}

/** Whether a request has no body at all. */
export function isBodyAbsent({ headers }: Request): boolean {
  const length = headers.get("content-length");
  return length === "0" || (length === null && headers.get("transfer-encoding") === null);
}

/** Reads a large body, or one of unknown length. Backpressure applies while too many complete bodies wait to be parsed. */
async function readLarge<T>(
  body: ReadableStream<Uint8Array>,
  rules: BodyRules,
  use: (blocks: Uint8Array<ArrayBuffer>[]) => Promise<T>,
): Promise<T> {
  const reader = body.getReader();
  // Cancelling ends a pending read.
  const cancel = (cause: unknown): void => void reader.cancel(cause).catch(() => {});
  const json = new ArrivingJson(rules, cancel);
  try {
    await takeAll(reader, json);
    return await use(json.complete());
  } catch (cause) {
    cancel(cause);
    throw json.refused ?? cause;
  } finally {
    json.release();
  }
}

async function takeAll(
  reader: { read(): Promise<{ done: boolean; value?: Uint8Array | undefined }> },
  json: ArrivingJson,
): Promise<void> {
  let chunkCount = 0;
  let byteCount = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done || value === undefined) return;
    await json.take(value);
    chunkCount += 1;
    byteCount += value.byteLength;
    // Chunks that are already buffered arrive within one turn of the event loop.
    if (chunkCount < CHUNKS_PER_TURN_MAX && byteCount < BYTES_PER_TURN_MAX) continue;
    await nextTurn();
    chunkCount = 0;
    byteCount = 0;
  }
}
