import { AppError, badField, badRequest, tooLarge, unsupportedMediaType } from "../kernel/errors.ts";
import {
  describeFault,
  isJsonObject,
  isTextWithinDepth,
  JSON_DEPTH_MAX,
  type JsonObject,
  type JsonValue,
} from "../kernel/json.ts";
import { jsonTextFault } from "../kernel/json-text.ts";

/** Bytes of a JSON body where the config says nothing. Decisions 2. */
export const BODY_MAX_BYTES = 10 * 1024 * 1024;

/** What a decoder throws. */
const NOT_UTF8 = "ERR_ENCODING_INVALID_ENCODED_DATA";

/** Characters from which on a look at the text before it is parsed is worth its time. */
const SCANNED_LENGTH_MIN = 256 * 1024;

/** The body as JSON. Errors: 415 for another or no content type, 413 over `maxBytes`, 400 for what is not JSON. Decisions 13. */
export async function readJson(request: Request, maxBytes: number): Promise<JsonValue> {
  const contentType = request.headers.get("content-type");
  if (contentType === null || !/^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(contentType)) {
    throw unsupportedMediaType(`The body must be application/json, got ${contentType ?? "no content type"}`);
  }
  const text = await readText(request, maxBytes);
  if (text.length > SCANNED_LENGTH_MIN && !isTextWithinDepth(text)) {
    throw badRequest(`The body nests deeper than ${JSON_DEPTH_MAX} levels`);
  }
  let value: JsonValue;
  try {
    value = JSON.parse(text);
  } catch {
    throw badRequest(text === "" ? "The body is empty, JSON is wanted" : "The body is not valid JSON");
  }
  const fault = jsonTextFault(text, value);
  if (fault === null) return value;
  const message = describeFault("The body", fault);
  throw fault.path === "" ? badRequest(message) : badField(fault.path, "invalid_value", message);
}

/** As `readJson`, and 400 for anything but an object. */
export async function readJsonObject(request: Request, maxBytes: number): Promise<JsonObject> {
  const value = await readJson(request, maxBytes);
  if (!isJsonObject(value)) throw badRequest("The body must be a JSON object");
  return value;
}

async function readText(request: Request, maxBytes: number): Promise<string> {
  const declaredBytes = request.headers.get("content-length");
  const over = () => tooLarge(`The body must be at most ${maxBytes} bytes`);
  if (declaredBytes !== null && Number(declaredBytes) > maxBytes) throw over();
  try {
    const decoder = new TextDecoder("utf-8", { fatal: true });
    // A declared length is the length: the server reads no further. Without one, the bytes are counted as they come.
    if (declaredBytes !== null || request.body === null) return decoder.decode(await request.bytes());
    let text = "";
    let byteCount = 0;
    for await (const chunk of request.body) {
      byteCount += chunk.byteLength;
      if (byteCount > maxBytes) throw over();
      text += decoder.decode(chunk, { stream: true });
    }
    return text + decoder.decode();
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    if (cause instanceof TypeError && "code" in cause && cause.code === NOT_UTF8) {
      throw badRequest("The body is not valid UTF-8");
    }
    throw badRequest("The body broke off");
  }
}
