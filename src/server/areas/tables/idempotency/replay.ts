import { isJsonObject, type JsonObject } from "../../../../kernel/json/json.ts";
import { isPromise } from "../../../../kernel/maybe-promise.ts";
import { nextTurn } from "../../../../kernel/time/scheduler.ts";
import type { TableRecord } from "../../../config/types.ts";
import type { DatabaseFile } from "../../../db/index.ts";
import { ANSWER_KEPT_BYTES_MAX, LARGE_ANSWER_BYTES, REPLAYED_PER_TURN } from "../limits.ts";
import { exceeds } from "../model/record-size.ts";
import type { Table } from "../records/namespaces.ts";
import type { Asker, Grant, RecordRights } from "../rules/access.ts";
import type { KeptAnswer } from "./kept-answers.ts";

export interface ReplayPlace {
  tables: ReadonlyMap<string, Table>;
  file: DatabaseFile;
  /** Table of the request's path; null when each record has its own. */
  table: string | null;
  asker: Asker;
}

/**
 * Returns a kept answer with the caller's current rights: a record becomes `{ id }` if it was deleted, or if the caller may no
 * longer read it in its kept or its current form. [TB323]
 */
export async function replayed(
  rights: RecordRights,
  { tables, file, table, asker }: ReplayPlace,
  kept: KeptAnswer,
  shape: AnswerShape,
): Promise<Answer> {
  const body = parseKept(kept.answer);
  // Written by `keepAnswer`.
  const names = kept.tables === null ? null : (JSON.parse(kept.tables) as string[]);
  const grants = new Map<Table, Grant>();
  const mayRead = async (name: string | null, record: TableRecord): Promise<boolean> => {
    const found = name === null ? undefined : tables.get(name);
    // The table is no longer declared, or a view has its name.
    if (found === undefined || found.model.view !== null) return false;
    let grant = grants.get(found);
    if (grant === undefined) {
      grant = await rights.grant(asker, found.model, "read");
      grants.set(found, grant);
    }
    if (grant.kind === "none") return false;
    const stored = found.store.get(file, String(record["id"]));
    if (stored === null) return false;
    for (const one of [stored, record]) {
      const answer = rights.coversRead(grant, asker, found.model, one);
      if (!(isPromise(answer) ? await answer : answer)) return false;
    }
    if (exceeds([stored], LARGE_ANSWER_BYTES)) await nextTurn();
    return true;
  };

  const shown: TableRecord[] = [];
  for (const [index, record] of recordsOf(shape, body).entries()) {
    if (index % REPLAYED_PER_TURN === REPLAYED_PER_TURN - 1) await nextTurn();
    const isRead = await mayRead(names === null ? table : (names[index] ?? null), record);
    shown.push(isRead ? record : idOnly(record));
  }
  return { status: kept.status, body: withRecords(shape, body, shown) };
}

/** Shape of an answer, which tells where its records are. */
export type AnswerShape = "record" | "batch" | "results" | "counts";

/** An answer that can be kept. */
export interface Answer {
  status: number;
  body: JsonObject;
}

/** Members that contain records, by shape. */
const MEMBERS: Readonly<Record<AnswerShape, readonly string[]>> = {
  record: [],
  batch: ["inserted", "updated"],
  results: ["results"],
  counts: [],
};

/** Returns the records of an answer, in order. */
export function recordsOf(shape: AnswerShape, body: JsonObject): TableRecord[] {
  if (shape === "record") return [body];
  // These members are arrays of records.
  return MEMBERS[shape].flatMap((name) => (body[name] ?? []) as TableRecord[]);
}

/** Returns the answer with its records replaced, in order. */
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

/** Returns the text of an answer to keep; for a large one, that with only the ids of its records. [TB324] */
export function keptText(shape: AnswerShape, body: JsonObject, { idsOnly }: { idsOnly: boolean }): string {
  const records = recordsOf(shape, body);
  // The size is estimated first, because serialising a large answer takes long.
  if (!idsOnly && !exceeds(records, ANSWER_KEPT_BYTES_MAX)) {
    const text = JSON.stringify(body);
    if (Buffer.byteLength(text) <= ANSWER_KEPT_BYTES_MAX) return text;
  }
  return JSON.stringify(withRecords(shape, body, records.map(idOnly)));
}

/** Parses a kept answer. Errors: the text is no answer. */
export function parseKept(text: string): JsonObject {
  const body: unknown = JSON.parse(text);
  if (!isJsonObject(body)) throw new Error("a kept answer is not an object");
  return body;
}
