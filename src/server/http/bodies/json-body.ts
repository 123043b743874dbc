import { AppError, badField, badRequest } from "../../../kernel/errors.ts";
import {
  describeFault,
  isJsonObject,
  isTextWithinDepth,
  type JsonFault,
  type JsonObject,
  type JsonValue,
} from "../../../kernel/json/json.ts";
import { JsonRefused, parseInSlices } from "../../../kernel/json/slices.ts";
import { jsonTextFault } from "../../../kernel/json/text.ts";
import { JSON_DEPTH_MAX } from "../../../kernel/limits.ts";
import { SLICED_LENGTH_MIN } from "../limits.ts";

/** The code of the error that a decoder throws for invalid UTF-8. */
const NOT_UTF8 = "ERR_ENCODING_INVALID_ENCODED_DATA";

/** Parses a JSON text. Errors: 400 for invalid JSON, and for a value that would be stored as a different one. [HT3] [HT100] */
export function parseJsonBody(text: string): JsonValue {
  let value: JsonValue;
  try {
    value = JSON.parse(text);
  } catch {
    throw text === "" ? badRequest("The body is empty, JSON is wanted") : notJson();
  }
  const fault = jsonTextFault(text, value);
  if (fault !== null) throw faultError(fault);
  return value;
}

/**
 * Parses a large body whose bytes are unchecked (`RequestContext.largeBody`). It may take long, so it runs in another process.
 * Errors: 400.
 */
export function parseJsonObjectBytes(chunks: readonly Uint8Array[]): JsonObject {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks));
  } catch {
    throw notUtf8();
  }
  if (!isTextWithinDepth(text)) throw badRequest(`The body nests deeper than ${JSON_DEPTH_MAX} levels`);
  const value = parseJsonBody(text);
  if (!isJsonObject(value)) throw notObject();
  return value;
}

export const notObject = (): AppError => badRequest("The body must be a JSON object");
const notJson = (): AppError => badRequest("The body is not valid JSON");
const notUtf8 = (): AppError => badRequest("The body is not valid UTF-8");

function faultError(fault: JsonFault): AppError {
  const message = describeFault("The body", fault);
  return fault.path === "" ? badRequest(message) : badField(fault.path, "invalid_value", message);
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

/** Maps what was thrown while a body was read to an error of the API. */
export function refusalOf(cause: unknown): AppError {
  if (cause instanceof AppError) return cause;
  if (cause instanceof JsonRefused) return cause.fault === null ? notJson() : faultError(cause.fault);
  if (cause instanceof TypeError && "code" in cause && cause.code === NOT_UTF8) return notUtf8();
  return badRequest("The connection closed before the whole body arrived");
}
