import { type AppError, badField, badRequest } from "../../../kernel/errors.ts";
import {
  describeFault,
  isJsonObject,
  isTextWithinDepth,
  type JsonFault,
  type JsonObject,
  type JsonValue,
} from "../../../kernel/json/json.ts";
import { jsonTextFault } from "../../../kernel/json/text.ts";
import { JSON_DEPTH_MAX } from "../../../kernel/limits.ts";

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
export const notJson = (): AppError => badRequest("The body is not valid JSON");
export const notUtf8 = (): AppError => badRequest("The body is not valid UTF-8");

export function faultError(fault: JsonFault): AppError {
  const message = describeFault("The body", fault);
  return fault.path === "" ? badRequest(message) : badField(fault.path, "invalid_value", message);
}
