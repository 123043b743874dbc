import { isPromise } from "../../../../kernel/maybe-promise.ts";
import { nextTurn } from "../../../../kernel/time/scheduler.ts";
import type { TableRecord } from "../../../config/types.ts";
import type { DatabaseFile } from "../../../db/index.ts";
import { LARGE_ANSWER_BYTES, REPLAYED_PER_TURN } from "../limits.ts";
import { exceeds } from "../model/stored-bytes.ts";
import type { Table } from "../records/namespaces.ts";
import type { Asker, Grant, RecordRights } from "../rules/access.ts";
import { type Answer, type AnswerShape, idOnly, parseKept, recordsOf, withRecords } from "./answers.ts";
import type { KeptAnswer } from "./kept-answers.ts";

export interface ReplayPlace {
  tables: ReadonlyMap<string, Table>;
  file: DatabaseFile;
  /** The table of the request's path; null where each record has its own. */
  table: string | null;
  asker: Asker;
}

/**
 * A kept answer for its caller as of now: a record that the caller may not read any more, as it was or as it is, or that is
 * deleted, is `{ id }`. [TB323]
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
    // A table that is not declared any more.
    if (found === undefined) return false;
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
