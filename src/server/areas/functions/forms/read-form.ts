import { AppError, badRequest } from "../../../../kernel/errors.ts";
import type { JsonValue } from "../../../../kernel/json/json.ts";
import { JsonRefused, parseInSlices } from "../../../../kernel/json/slices.ts";
import { nextTurn, type Scheduler } from "../../../../kernel/time/scheduler.ts";
import { parseBoundary } from "../../../http/bodies/form-boundary.ts";
import type { PartHeader, PartReader } from "../../../http/bodies/form-parts.ts";
import { JsonScan } from "../../../http/bodies/json-scan.ts";
import { UrlEncoded } from "../../../http/bodies/urlencoded.ts";
import { FORM_FIELDS_MAX, FORM_PIECE_BYTES, JSON_TEXT_MAX_CHARACTERS } from "../limits.ts";
import { jsonOf, parsedFrom, prototypeWithin } from "../values/text.ts";

/** A field as sent. */
export type FormField = [name: string, value: string | File];

/** Reads the fields of a form, which is split as it arrives. Errors: 400. */
export async function readForm(chunks: AsyncIterable<Uint8Array>, contentType: string): Promise<FormField[]> {
  if (!/^multipart\//i.test(contentType)) {
    const form = new UrlEncoded(FORM_FIELDS_MAX);
    for await (const piece of inPieces(chunks)) form.take(piece);
    form.end();
    return form.fields;
  }
  const fields: FormField[] = [];
  const boundary = parseBoundary(contentType);
  // Loaded with the first form: a start without its parser is faster.
  const { createFormParts } = await import("../../../http/bodies/form-parts.ts");
  const parts = createFormParts(boundary, FORM_FIELDS_MAX, (header) => openPart(header, fields));
  for await (const piece of inPieces(chunks)) await parts.push(piece);
  await parts.end();
  return fields;
}

/** Splits chunks into pieces, each in a turn of the event loop of its own. */
async function* inPieces(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let isFirst = true;
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.byteLength; at += FORM_PIECE_BYTES) {
      if (!isFirst) await nextTurn();
      isFirst = false;
      yield chunk.subarray(at, at + FORM_PIECE_BYTES);
    }
  }
}

function openPart({ name, isFile, fileName, contentType }: PartHeader, fields: FormField[]): PartReader {
  if (name === null) throw badRequest("A part of the form has no name");
  const taken: Buffer<ArrayBuffer>[] = [];
  return {
    // A copy: the bytes are valid only until the next piece.
    take: (bytes) => taken.push(Buffer.from(bytes)),
    end() {
      const type = contentType ?? "application/octet-stream";
      fields.push([name, isFile ? new File(taken, fileName ?? "", { type }) : textOfPart(name, taken)]);
    },
  };
}

function textOfPart(name: string, taken: readonly Buffer[]): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.concat(taken));
  } catch {
    throw badRequest(`${name} is not valid UTF-8`);
  }
}

/** A field as handlers receive it: a text that is JSON is parsed. */
export type ParsedField = [name: string, value: unknown];

/**
 * Parses the texts that are arrays or objects, within the bounds of a JSON body. `areValuesCounted`: whether the values of all of
 * them together are bounded.
 */
export async function parseTexts(
  fields: readonly FormField[],
  { turns, areValuesCounted }: { turns: Scheduler; areValuesCounted: boolean },
): Promise<ParsedField[]> {
  const scan = new JsonScan({ areValuesCounted });
  const parsed: ParsedField[] = [];
  let parsedLength = 0;
  for (const [name, value] of fields) {
    const isJson = typeof value === "string" && /^\s*[[{]/.test(value);
    const json = isJson ? await parseText(value, scan, turns) : undefined;
    parsed.push([name, json ?? value]);
    if (!isJson) continue;
    parsedLength += value.length;
    if (parsedLength <= JSON_TEXT_MAX_CHARACTERS) continue;
    parsedLength = 0;
    await nextTurn();
  }
  return parsed;
}

/**
 * Parses an array or object; undefined: the text is neither, nests too deep, or has a `__proto__` member. Errors: 413 for too many
 * values.
 */
async function parseText(text: string, scan: JsonScan, turns: Scheduler): Promise<object | undefined> {
  const isWithinDepth = await scanned(text, scan);
  if (!isWithinDepth) return undefined;
  if (text.length <= JSON_TEXT_MAX_CHARACTERS) return marked(text, jsonOf(text));
  try {
    const value = await turns.run(parseInSlices(text));
    return prototypeWithin(value) !== null ? undefined : marked(text, value);
  } catch (cause) {
    if (cause instanceof JsonRefused) return undefined;
    throw cause;
  }
}

const marked = (text: string, value: JsonValue | undefined): object | undefined =>
  typeof value === "object" && value !== null ? parsedFrom(text, value) : undefined;

async function scanned(text: string, scan: JsonScan): Promise<boolean> {
  scan.begin();
  try {
    for (let at = 0; at < text.length; at += FORM_PIECE_BYTES) {
      if (at > 0) await nextTurn();
      scan.take(Buffer.from(text.slice(at, at + FORM_PIECE_BYTES)));
    }
    return true;
  } catch (cause) {
    if (cause instanceof AppError && cause.status === 400) return false;
    throw cause;
  }
}
