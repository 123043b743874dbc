import { AppError, badField, badRequest, tooLarge, unsupportedMediaType } from "../kernel/errors.ts";
import { describeFault, isJsonObject, type JsonFault, type JsonObject, type JsonValue } from "../kernel/json.ts";
import { JsonRefused, parseInSlices } from "../kernel/json-slices.ts";
import { jsonTextFault } from "../kernel/json-text.ts";
import type { Turns } from "../kernel/turns.ts";
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
  rules.query.refuseUnknown();
  const contentType = request.headers.get("content-type");
  if (contentType === null || !/^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(contentType)) {
    throw unsupportedMediaType(`The body must be application/json, got ${contentType ?? "no content type"}`);
  }
  const text = await readText(request, rules);
  // Anything but an array or object is no more than a long string.
  if (text.length > SLICED_LENGTH_MIN && /^[ \t\n\r]*[[{]/.test(text)) return parseLarge(text, rules.turns);
  let value: JsonValue;
  try {
    value = JSON.parse(text);
  } catch {
    throw badRequest(text === "" ? "The body is empty, JSON is wanted" : NOT_JSON);
  }
  const fault = jsonTextFault(text, value);
  if (fault !== null) throw faultError(fault);
  return value;
}

const NOT_JSON = "The body is not valid JSON";

async function parseLarge(text: string, turns: Turns): Promise<JsonValue> {
  try {
    return await turns.run(parseInSlices(text));
  } catch (cause) {
    if (!(cause instanceof JsonRefused)) throw cause;
    throw cause.fault === null ? badRequest(NOT_JSON) : faultError(cause.fault);
  }
}

function faultError(fault: JsonFault): AppError {
  const message = describeFault("The body", fault);
  return fault.path === "" ? badRequest(message) : badField(fault.path, "invalid_value", message);
}

/** Whether a request has no body at all. */
export function isBodyAbsent({ headers }: Request): boolean {
  const length = headers.get("content-length");
  return length === "0" || (length === null && headers.get("transfer-encoding") === null);
}

/** As `readJson`, and 400 for anything but an object. */
export async function readJsonObject(request: Request, rules: BodyRules): Promise<JsonObject> {
  const value = await readJson(request, rules);
  if (!isJsonObject(value)) throw badRequest("The body must be a JSON object");
  return value;
}

async function readText(request: Request, rules: BodyRules): Promise<string> {
  const declared = request.headers.get("content-length");
  if (declared !== null && Number(declared) > rules.maxBytes) throw over(rules.maxBytes);
  const { body } = request;
  try {
    // A declared length is the length: the server reads no further.
    const isSmall = declared !== null && Number(declared) <= SMALL_BODY_MAX_BYTES;
    if (isSmall || body === null) {
      return new TextDecoder("utf-8", { fatal: true }).decode(await request.bytes());
    }
    return await readChunks(body, rules);
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    if (cause instanceof TypeError && "code" in cause && cause.code === NOT_UTF8) {
      throw badRequest("The body is not valid UTF-8");
    }
    throw badRequest("The body broke off");
  }
}

const over = (maxBytes: number): AppError => tooLarge(`The body must be at most ${maxBytes} bytes`);

/** A large body, or one of unknown length: what has arrived is counted, since its end may never come, and looked at. */
async function readChunks(body: ReadableStream<Uint8Array>, rules: BodyRules): Promise<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const reader = body.getReader();
  let refused: AppError | null = null;
  const sender = rules.sender();
  const scan = new JsonScan({ areValuesCounted: sender !== null });
  const held = rules.bodies.begin(sender, (cause) => {
    refused = cause;
    // The read that waits for more ends by it.
    void reader.cancel(cause).catch(() => {});
  });
  let text = "";
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
      if (done) return text + decoder.decode();
      byteCount += value.byteLength;
      if (byteCount > rules.maxBytes) throw over(rules.maxBytes);
      held.add(value.byteLength);
      const part = decoder.decode(value, { stream: true });
      scan.take(part);
      text += part;
    }
  } catch (cause) {
    void reader.cancel(cause).catch(() => {});
    throw refused ?? cause;
  } finally {
    held.release();
  }
}
