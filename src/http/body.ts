import { AppError, badField, badRequest, tooLarge, unsupportedMediaType } from "../kernel/errors.ts";
import { describeFault, isJsonObject, type JsonFault, type JsonObject, type JsonValue } from "../kernel/json.ts";
import { JsonRefused, parseInSlices } from "../kernel/json-slices.ts";
import { jsonTextFault } from "../kernel/json-text.ts";
import { nextTurn } from "../kernel/next-turn.ts";
import type { Turns } from "../kernel/turns.ts";
import { JsonScan } from "./json-scan.ts";
import {
  BLOCK_BYTES,
  BYTES_PER_TURN_MAX,
  CHUNKS_PER_TURN_MAX,
  SLICED_LENGTH_MIN,
  SMALL_BODY_MAX_BYTES,
} from "./limits.ts";
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
  const declared = request.headers.get("content-length");
  if (declared !== null && Number(declared) > rules.maxBytes) throw over(rules.maxBytes);
  const { body } = request;
  try {
    // A declared length is the length: the server reads no further.
    const isSmall = declared !== null && Number(declared) <= SMALL_BODY_MAX_BYTES;
    if (isSmall || body === null) return parse(new TextDecoder("utf-8", { fatal: true }).decode(await request.bytes()));
    return await readLarge(body, rules);
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    if (cause instanceof JsonRefused) throw cause.fault === null ? badRequest(NOT_JSON) : faultError(cause.fault);
    if (cause instanceof TypeError && "code" in cause && cause.code === NOT_UTF8) {
      throw badRequest("The body is not valid UTF-8");
    }
    throw badRequest("The connection closed before the whole body arrived");
  }
}

const NOT_JSON = "The body is not valid JSON";

function parse(text: string): JsonValue {
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

/** Frees the blocks as it decodes them. */
function* parseInSteps(blocks: Uint8Array[]): Generator<void, JsonValue> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  for (let block = blocks.shift(); block !== undefined; block = blocks.shift()) {
    text += decoder.decode(block, { stream: true });
    yield;
  }
  text += decoder.decode();
  // Anything but an array or object is no more than a long string.
  const isSliced = text.length > SLICED_LENGTH_MIN && /^[ \t\n\r]*[[{]/.test(text);
  yield;
  return isSliced ? yield* parseInSlices(text) : parse(text);
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

const over = (maxBytes: number): AppError => tooLarge(`The body must be at most ${maxBytes} bytes`);

/** A large body, or one of unknown length. Its bytes are held back while too many complete bodies wait for their turn. */
async function readLarge(body: ReadableStream<Uint8Array>, rules: BodyRules): Promise<JsonValue> {
  const reader = body.getReader();
  let refused: AppError | null = null;
  const sender = rules.sender();
  const held = rules.bodies.begin(sender, (cause) => {
    refused = cause;
    // The read that waits for more ends by it.
    void reader.cancel(cause).catch(() => {});
  });
  try {
    const blocks = await readBlocks(reader, {
      maxBytes: rules.maxBytes,
      scan: new JsonScan({ areValuesCounted: sender !== null }),
      async arrived(byteCount) {
        if (refused !== null) throw refused;
        held.add(byteCount);
        await rules.bodies.room();
      },
    });
    held.complete();
    return await rules.turns.run(parseInSteps(blocks));
  } catch (cause) {
    void reader.cancel(cause).catch(() => {});
    throw refused ?? cause;
  } finally {
    held.release();
  }
}

/** The bytes in blocks of one size, however small the chunks are in which they arrive. */
async function readBlocks(
  reader: { read(): Promise<{ done: boolean; value?: Uint8Array | undefined }> },
  options: { maxBytes: number; scan: JsonScan; arrived: (byteCount: number) => Promise<void> },
): Promise<Uint8Array[]> {
  const blocks: Uint8Array[] = [];
  let block = new Uint8Array(0);
  let used = 0;
  let byteCount = 0;
  let chunkCount = 0;
  let turnedAt = 0;
  while (true) {
    const { done, value } = await reader.read();
    chunkCount += 1;
    // Chunks that are there already come without a turn of the event loop between them.
    if (chunkCount >= CHUNKS_PER_TURN_MAX || byteCount - turnedAt >= BYTES_PER_TURN_MAX) {
      await nextTurn();
      chunkCount = 0;
      turnedAt = byteCount;
    }
    await options.arrived(value?.byteLength ?? 0);
    if (done || value === undefined) {
      blocks.push(block.subarray(0, used));
      return blocks;
    }
    byteCount += value.byteLength;
    if (byteCount > options.maxBytes) throw over(options.maxBytes);
    options.scan.take(value);
    for (let from = 0; from < value.byteLength; ) {
      if (used === block.byteLength) {
        blocks.push(block);
        block = new Uint8Array(BLOCK_BYTES);
        used = 0;
      }
      const part = value.subarray(from, from + BLOCK_BYTES - used);
      block.set(part, used);
      used += part.byteLength;
      from += part.byteLength;
    }
  }
}
