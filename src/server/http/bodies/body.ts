import { AppError, badRequest, tooLarge, unsupportedMediaType } from "../../../kernel/errors.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { JsonRefused, parseInSlices } from "../../../kernel/json/slices.ts";
import { nextTurn, type Scheduler } from "../../../kernel/time/scheduler.ts";
import {
  BLOCK_BYTES,
  BYTES_PER_TURN_MAX,
  CHUNKS_PER_TURN_MAX,
  SLICED_LENGTH_MIN,
  SMALL_BODY_MAX_BYTES,
} from "../limits.ts";
import { faultError, notJson, notUtf8, parseJsonBody } from "./json-body.ts";
import { JsonScan } from "./json-scan.ts";
import type { Query } from "./query.ts";
import type { UnfinishedBodies } from "./unfinished-bodies.ts";

/** The code of the error that a decoder throws for invalid UTF-8. */
const NOT_UTF8 = "ERR_ENCODING_INVALID_ENCODED_DATA";

/** Decodes whole texts; holds no state between them. */
const UTF8 = new TextDecoder("utf-8", { fatal: true });

export interface BodyRules {
  /** The query parameters. They are validated before the body, since both belong to one request. */
  query: Query;
  maxBytes: number;
  bodies: UnfinishedBodies;
  /** The scheduler that parses large bodies one after the other, in steps. */
  turns: Scheduler;
  /** The sender whose memory quota a large body counts against; null for a service key, whose values are not counted either. */
  sender: () => string | null;
  /** Receives the bytes as they are read; null or absent: no digest is needed. */
  digest?: BodyDigest | null;
}

/** A hash of a body's bytes. */
export interface BodyDigest {
  update(bytes: Uint8Array): unknown;
}

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

/** Maps what was thrown while a body was read to an error of the API. */
export function refusalOf(cause: unknown): AppError {
  if (cause instanceof AppError) return cause;
  if (cause instanceof JsonRefused) return cause.fault === null ? notJson() : faultError(cause.fault);
  if (cause instanceof TypeError && "code" in cause && cause.code === NOT_UTF8) return notUtf8();
  return badRequest("The connection closed before the whole body arrived");
}

/** Parses a body in steps, and frees its blocks as it decodes them. */
export function* parseInSteps(blocks: Uint8Array[]): Generator<void, JsonValue> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  for (let block = blocks.shift(); block !== undefined; block = blocks.shift()) {
    text += decoder.decode(block, { stream: true });
    yield;
  }
  text += decoder.decode();
  // Any other value is at most one long string, which needs no slicing.
  const isSliced = text.length > SLICED_LENGTH_MIN && /^[ \t\n\r]*[[{]/.test(text);
  yield;
  return isSliced ? yield* parseInSlices(text) : parseJsonBody(text);
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

export const over = (maxBytes: number): AppError => tooLarge(`The body must be at most ${maxBytes} bytes`);

/** Reads a large body, or one of unknown length. Backpressure applies while too many complete bodies wait to be parsed. */
async function readLarge<T>(
  body: ReadableStream<Uint8Array>,
  rules: BodyRules,
  use: (blocks: Uint8Array<ArrayBuffer>[]) => Promise<T>,
): Promise<T> {
  const reader = body.getReader();
  let refused: AppError | null = null;
  const sender = rules.sender();
  const held = rules.bodies.begin(sender, (cause) => {
    refused = cause;
    // Cancelling ends a pending read.
    void reader.cancel(cause).catch(() => {});
  });
  try {
    const blocks = await readBlocks(reader, {
      maxBytes: rules.maxBytes,
      scan: new JsonScan({ areValuesCounted: sender !== null }),
      digest: rules.digest ?? null,
      async arrived(byteCount) {
        if (refused !== null) throw refused;
        held.add(byteCount);
        await rules.bodies.room();
      },
    });
    held.complete();
    return await use(blocks);
  } catch (cause) {
    void reader.cancel(cause).catch(() => {});
    throw refused ?? cause;
  } finally {
    held.release();
  }
}

/** Reads the bytes into blocks of one size, however small the chunks in which they arrive. */
async function readBlocks(
  reader: { read(): Promise<{ done: boolean; value?: Uint8Array | undefined }> },
  options: {
    maxBytes: number;
    scan: JsonScan;
    digest: BodyDigest | null;
    arrived: (byteCount: number) => Promise<void>;
  },
): Promise<Uint8Array<ArrayBuffer>[]> {
  const blocks: Uint8Array<ArrayBuffer>[] = [];
  let block = new Uint8Array(0);
  let used = 0;
  let byteCount = 0;
  let chunkCount = 0;
  let turnedAt = 0;
  while (true) {
    const { done, value } = await reader.read();
    chunkCount += 1;
    // Chunks that are already buffered arrive within one turn of the event loop.
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
    options.digest?.update(value);
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
