import { AppError, badRequest, tooLarge, unsupportedMediaType } from "../kernel/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../kernel/json.ts";
import { JsonRefused, parseInSlices } from "../kernel/json-slices.ts";
import type { Turns } from "../kernel/turns.ts";
import { faultError, notJson, notUtf8, parseJsonBody } from "./json-body.ts";
import { JsonScan } from "./json-scan.ts";
import { BYTES_PER_TURN_MAX, CHUNKS_PER_TURN_MAX, SLICED_LENGTH_MIN, SMALL_BODY_MAX_BYTES } from "./limits.ts";
import type { Query } from "./query.ts";
import type { UnfinishedBodies } from "./unfinished-bodies.ts";

/** What a decoder throws. */
const NOT_UTF8 = "ERR_ENCODING_INVALID_ENCODED_DATA";

export interface BodyRules {
  /** Judged first: it belongs to the form as well. */
  query: Query;
  maxBytes: number;
  bodies: UnfinishedBodies;
  /** Large bodies are parsed one after the other, in steps. */
  turns: Turns;
  /** Whose memory a large body counts as; null for a service key, whose values are not counted either. */
  sender: () => string | null;
}

/** The body as JSON. Errors: 400 for an unknown query parameter, 415 for another or no content type, 413, 400 for what is not JSON. */
export async function readJson(request: Request, rules: BodyRules): Promise<JsonValue> {
  assertJson(request, rules);
  const text = await readText(request, rules);
  // Anything but an array or object is no more than a long string.
  if (text.length > SLICED_LENGTH_MIN && /^[ \t\n\r]*[[{]/.test(text)) return parseLarge(text, rules.turns);
  return parseJsonBody(text);
}

/**
 * A JSON body as the chunks in which it arrives, for who parses it in another process (`parseJsonBytes`); null for one whose declared
 * length is small. Errors: as `readJson`, except for what parsing finds.
 */
export async function readLargeBody(request: Request, rules: BodyRules): Promise<Uint8Array<ArrayBuffer>[] | null> {
  assertJson(request, rules);
  const { body } = request;
  if (body === null || isSmall(request)) return null;
  assertDeclaredLength(request, rules);
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  await wholeBody(() => readChunks(body, rules, (chunk) => chunks.push(chunk)));
  return chunks;
}

function assertJson({ headers }: Request, { query }: BodyRules): void {
  query.refuseUnknown();
  const contentType = headers.get("content-type");
  if (contentType === null || !/^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(contentType)) {
    throw unsupportedMediaType(`The body must be application/json, got ${contentType ?? "no content type"}`);
  }
}

async function parseLarge(text: string, turns: Turns): Promise<JsonValue> {
  try {
    return await turns.run(parseInSlices(text));
  } catch (cause) {
    if (!(cause instanceof JsonRefused)) throw cause;
    throw cause.fault === null ? notJson() : faultError(cause.fault);
  }
}

/** As `readJson`, and 400 for anything but an object. */
export async function readJsonObject(request: Request, rules: BodyRules): Promise<JsonObject> {
  const value = await readJson(request, rules);
  if (!isJsonObject(value)) throw badRequest("The body must be a JSON object");
  return value;
}

function assertDeclaredLength({ headers }: Request, { maxBytes }: BodyRules): void {
  const declared = headers.get("content-length");
  if (declared !== null && Number(declared) > maxBytes) throw over(maxBytes);
}

/** A declared length is the length: the server reads no further. */
function isSmall({ headers }: Request): boolean {
  const declared = headers.get("content-length");
  return declared !== null && Number(declared) <= SMALL_BODY_MAX_BYTES;
}

async function readText(request: Request, rules: BodyRules): Promise<string> {
  assertDeclaredLength(request, rules);
  const { body } = request;
  return wholeBody(async () => {
    const decoder = new TextDecoder("utf-8", { fatal: true });
    if (isSmall(request) || body === null) return decoder.decode(await request.bytes());
    const scan = new JsonScan({ areValuesCounted: rules.sender() !== null });
    let text = "";
    await readChunks(body, rules, (chunk) => {
      const part = decoder.decode(chunk, { stream: true });
      scan.take(part);
      text += part;
    });
    return text + decoder.decode();
  });
}

async function wholeBody<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    if (cause instanceof TypeError && "code" in cause && cause.code === NOT_UTF8) {
      throw notUtf8();
    }
    throw badRequest("The body broke off");
  }
}

const over = (maxBytes: number): AppError => tooLarge(`The body must be at most ${maxBytes} bytes`);

/** A large body, or one of unknown length: what has arrived is counted, since its end may never come, and given to `take`. */
async function readChunks(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  rules: BodyRules,
  take: (chunk: Uint8Array<ArrayBuffer>) => void,
): Promise<void> {
  const reader = body.getReader();
  let refused: AppError | null = null;
  const held = rules.bodies.begin(rules.sender(), (cause) => {
    refused = cause;
    // The read that waits for more ends by it.
    void reader.cancel(cause).catch(() => {});
  });
  let byteCount = 0;
  let chunkCount = 0;
  let turnedAt = 0;
  try {
    while (true) {
      const { done, value } = await reader.read();
      chunkCount += 1;
      // Chunks that are there already come without a turn of the event loop between them.
      if (chunkCount >= CHUNKS_PER_TURN_MAX || byteCount - turnedAt >= BYTES_PER_TURN_MAX) {
        await new Promise((resolve) => setImmediate(resolve));
        chunkCount = 0;
        turnedAt = byteCount;
      }
      if (refused !== null) throw refused;
      if (done) return;
      byteCount += value.byteLength;
      if (byteCount > rules.maxBytes) throw over(rules.maxBytes);
      held.add(value.byteLength);
      take(value);
    }
  } catch (cause) {
    void reader.cancel(cause).catch(() => {});
    throw refused ?? cause;
  } finally {
    held.release();
  }
}
