import { isJsonObject, type JsonObject } from "../../../../kernel/json/json.ts";
import type { TableRecord } from "../../../config/types.ts";
import { ANSWER_KEPT_BYTES_MAX } from "../limits.ts";
import { exceeds } from "../model/stored-bytes.ts";

/** Where the records of an answer are. */
export type AnswerShape = "record" | "batch" | "results" | "counts";

/** An answer that can be kept. */
export interface Answer {
  status: number;
  body: JsonObject;
}

/** The members with records. */
const MEMBERS: Readonly<Record<AnswerShape, readonly string[]>> = {
  record: [],
  batch: ["inserted", "updated"],
  results: ["results"],
  counts: [],
};

/** The records of an answer, in its order. */
export function recordsOf(shape: AnswerShape, body: JsonObject): TableRecord[] {
  if (shape === "record") return [body];
  // These members are arrays of records.
  return MEMBERS[shape].flatMap((name) => (body[name] ?? []) as TableRecord[]);
}

/** The answer with other records in their places. */
export function withRecords(shape: AnswerShape, body: JsonObject, records: readonly TableRecord[]): JsonObject {
  if (shape === "record") return records[0] ?? body;
  const changed: JsonObject = { ...body };
  let next = 0;
  for (const name of MEMBERS[shape]) {
    const count = ((body[name] ?? []) as TableRecord[]).length;
    changed[name] = records.slice(next, next + count);
    next += count;
  }
  return changed;
}

export const idOnly = (record: TableRecord): TableRecord => ({ id: record["id"] ?? null });

/** The text of an answer to be kept: of a large one the ids of its records alone. [TB324] */
export function keptText(shape: AnswerShape, body: JsonObject, { idsOnly }: { idsOnly: boolean }): string {
  const records = recordsOf(shape, body);
  // The size is estimated first, because serialising a large answer takes long.
  if (!idsOnly && !exceeds(records, ANSWER_KEPT_BYTES_MAX)) {
    const text = JSON.stringify(body);
    if (Buffer.byteLength(text) <= ANSWER_KEPT_BYTES_MAX) return text;
  }
  return JSON.stringify(withRecords(shape, body, records.map(idOnly)));
}

/** Errors: the text is not that of an answer. */
export function parseKept(text: string): JsonObject {
  const body: unknown = JSON.parse(text);
  if (!isJsonObject(body)) throw new Error("a kept answer is not an object");
  return body;
}
