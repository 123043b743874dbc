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

/** Errors: 400 for a text that is not JSON, or that has a value which would be stored as another one. [HT3] [HT100] */
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
 * A large body whose bytes nothing has looked at yet (`RequestContext.largeBody`). It may take long: it is parsed in another
 * process. Errors: 400.
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
