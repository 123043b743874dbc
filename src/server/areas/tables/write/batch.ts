import { AppError, badField, badRequest, Refusal, tooLarge } from "../../../../kernel/errors.ts";
import { matches } from "../../../../kernel/records/filter-match.ts";
import { nextTurn } from "../../../../kernel/time/scheduler.ts";
import type { BatchResult } from "../../../config/app/index.ts";
import type { TableRecord } from "../../../config/types.ts";
import type { DatabaseFile, ReadCaller } from "../../../db/index.ts";
import { isEmpty, NO_FILTER, type ParsedFilter, parseFilter, withBoth } from "../filters/filter.ts";
import {
  BATCH_BY_FILTER_RECORDS_MAX,
  BATCH_OPERATIONS_MAX,
  CONDITION_COST_MAX,
  LINKED_IDS_MAX,
  RELATED_ROWS_MAX,
  RULE_RECORDS_MAX,
} from "../limits.ts";
import type { BatchBody, ByFilterBody } from "../model/requests.ts";
import { matchesOf } from "../query/matches.ts";
import { pagesOf } from "../query/pages.ts";
import { firstById, tooManyToAsk } from "../query/reads.ts";
import { settledNow } from "../query/related-now.ts";
import type { Table } from "../records/namespaces.ts";
import type { Asker, Grant, RecordRights } from "../rules/access.ts";
import { Suspended } from "../rules/decisions.ts";
import { touch, type WriteGrants } from "./asking.ts";
import { type CascadeSteps, mayDeleteInSteps } from "./cascade-steps.ts";
import { type Patch, parsePatch, settledPatch } from "./changes.ts";
import type { BatchFilter, FindConditions } from "./conditions.ts";
import type { Mutations } from "./mutations.ts";
import { Operations, type PlacedRecord } from "./operations.ts";
import { costOf } from "./preconditions.ts";
import type { LargeBody } from "./prepared.ts";
import { CascadeTooLarge } from "./referring.ts";
import type { WriteContext } from "./write-context.ts";
import type { KeepAnswer, Writes } from "./writes.ts";

/** Operations of a batch; those missing in the request are empty. */
export type Batch = { readonly [Kind in keyof BatchBody]-?: NonNullable<BatchBody[Kind]> };

/** Checks the number of operations. Errors: 400 for too many. */
export function checkBatch({ inserts, updates, deletes }: BatchBody): Batch {
  const batch = { inserts: inserts ?? [], updates: updates ?? [], deletes: deletes ?? [] };
  const count = batch.inserts.length + batch.updates.length + batch.deletes.length;
  if (count <= BATCH_OPERATIONS_MAX) return batch;
  throw badRequest(`A batch takes at most ${BATCH_OPERATIONS_MAX} operations, got ${count}`);
}

export function* placedRecords({ model }: Table, { inserts, updates }: Batch): Generator<PlacedRecord> {
  for (const [index, record] of inserts.entries()) yield { model, place: `inserts.${index}`, record };
  for (const [index, { data }] of updates.entries()) yield { model, place: `updates.${index}`, record: data };
}

export const bodiesOf = (table: Table, { inserts, updates }: Batch): LargeBody[] => [
  ...inserts.map((body, index) => ({ table, body, index })),
  ...updates.map(({ data }) => ({ table, body: data, index: null })),
];

/** Runs the operations in one transaction, all or nothing. [TB36] */
export function runBatch(
  mutations: Mutations,
  context: WriteContext,
  grants: WriteGrants,
  table: Table,
  body: Batch,
  options: { upsert: boolean },
): BatchResult {
  const { model, validator } = table;
  const target = model.byName.get("id");
  const operations = new Operations(context);
  const inserted = body.inserts.map((one, index) =>
    operations.run(`inserts.${index}`, () => {
      if (!options.upsert || target === undefined || one["id"] === undefined) {
        return mutations.insert(context, grants, table, one, index);
      }
      return mutations.upsert(context, grants, table, one, { target, index }).record;
    }),
  );
  const updated = body.updates.map(({ id, data }, index) =>
    operations.run(`updates.${index}`, () =>
      mutations.update(context, grants, table, id, parsePatch(model, validator, data)),
    ),
  );
  const deleted = body.deletes.map((id, index) =>
    operations.run(`deletes.${index}`, () => {
      mutations.delete(context, grants, table, id);
      return { id };
    }),
  );
  operations.finish();
  const isDone = <T>(result: T | null): result is T => result !== null;
  return { inserted: inserted.filter(isDone), updated: updated.filter(isDone), deleted: deleted.filter(isDone) };
}

export type ByFilterResult = { processed: number; succeeded: number };

export interface ByFilter extends BatchFilter {
  /** Changes of the records; null when deleting. */
  patch: Patch | null;
}

/** Parses a batch by filter. Errors: 400, also without conditions, because the whole table would be changed. [TB39] */
export function parseByFilter(
  table: Table,
  body: ByFilterBody,
  conditions: Awaited<ReturnType<FindConditions>>,
): ByFilter {
  const { model, validator } = table;
  const asked = conditions.ofBatch(model, body);
  if (isEmpty(asked.filter)) {
    throw badField("filter", "required", "filter or orFilter must have a condition");
  }
  if (body.action === "delete") return { ...asked, patch: null };
  // No record's own texts are sent back to several.
  return { ...asked, patch: settledPatch(parsePatch(model, validator, body.data), {}, () => false) };
}

/**
 * Changes at most 500 matching, readable records that the rules allow to change, ordered by id. The search for them may take long
 * and runs outside the transaction, which checks each of them again. Deletions that are too large for one transaction run in
 * steps. [TB39] [TB142]
 */
export async function runByFilter(
  deps: {
    mutations: Mutations;
    writes: Writes;
    steps: CascadeSteps;
    rights: RecordRights;
    caller: ReadCaller | undefined;
    keep: KeepAnswer<ByFilterResult> | undefined;
  },
  asker: Asker,
  grants: WriteGrants,
  table: Table,
  file: DatabaseFile,
  body: ByFilter,
): Promise<ByFilterResult> {
  const ids = await readableIds(deps, asker, grants.read, { table, file }, body.filter);
  let tooMuch: string | null = null;
  const noted = (id: string, cause: unknown): never => {
    tooMuch = cause instanceof CascadeTooLarge ? id : tooMuch;
    throw cause;
  };
  const { keep } = deps;
  const change = () =>
    deps.writes.run(file, asker, (context) => changeThose(deps, context, grants, table, body, { ids, noted }), {
      keep,
    });
  for (let cleared = 0; ; cleared++) {
    tooMuch = null;
    try {
      return await change();
    } catch (cause) {
      if (tooMuch === null || !mayDeleteInSteps(asker.principal) || cleared === ids.length) throw cause;
      // Its own hook has allowed the deletion. Records that a hook keeps stay, with the records that refer to them.
      await deps.steps.clear(asker, file, table, tooMuch);
    }
  }
}

function changeThose(
  { mutations, rights }: { mutations: Mutations; rights: RecordRights },
  context: WriteContext,
  grants: WriteGrants,
  table: Table,
  body: ByFilter,
  { ids, noted }: { ids: readonly string[]; noted: (id: string, cause: unknown) => never },
): ByFilterResult {
  let processed = 0;
  let succeeded = 0;
  const { related } = context;
  const operations = new Operations(context);
  for (const id of ids) {
    // A bound of one request is reached; repeating the request continues with the rest.
    if (context.stored.isUsedUp || context.conditionCost > CONDITION_COST_MAX) break;
    // The rest is left for a record with many.
    if (context.linkedIds > LINKED_IDS_MAX / 2) break;
    if (related.rows > RELATED_ROWS_MAX || related.bytes > CONDITION_COST_MAX) break;
    operations.run(id, () => {
      const record = table.store.get(context.tx, id);
      touch(context, table, id);
      if (record === null || !stillMatches(context, body.filterNow(context), record)) return;
      try {
        if (!isReadable(rights, grants.read, context, table, record)) return;
      } catch (cause) {
        context.stored.await(record);
        throw cause;
      }
      processed++;
      try {
        if (changeOne(mutations, context, grants, table, record, body)) succeeded++;
        else context.stored.take(record);
      } catch (cause) {
        noted(id, cause);
      }
    });
  }
  operations.finish();
  return { processed, succeeded };
}

/** Whether the record still matches. Errors: as `boundedCost`; 413 for relations that examine too much for one record. */
function stillMatches(context: WriteContext, filter: ParsedFilter, record: TableRecord): boolean {
  context.conditionCost += boundedCost(filter, record);
  const { tx, related } = context;
  const examined = { rows: 0, bytes: 0 };
  const isMatch = matches(settledNow(tx, filter, record, examined), record);
  related.rows += examined.rows;
  related.bytes += examined.bytes;
  return isMatch;
}

/** Returns the cost as `costOf` does. Errors: 413 for a record that alone takes too long to compare. */
function boundedCost(filter: ParsedFilter, record: TableRecord): number {
  const cost = costOf(filter, record);
  if (cost <= CONDITION_COST_MAX) return cost;
  throw tooLarge("The conditions compare too much text or JSON of one record; use fewer, or compare shorter fields");
}

/** Returns the first 500 matching, readable ids. */
async function readableIds(
  { rights, caller }: { rights: RecordRights; caller: ReadCaller | undefined },
  asker: Asker,
  read: Grant,
  { table, file }: { table: Table; file: DatabaseFile },
  filter: ParsedFilter,
): Promise<string[]> {
  const limit = BATCH_BY_FILTER_RECORDS_MAX;
  if (read.kind === "none") return [];
  if (read.kind !== "record") {
    return pagesOf(table).ids(file, matchesOf(table.model, filter, read), { limit, caller });
  }
  // The rule is evaluated before the filter, so that neither the time nor the bound reveals the contents of hidden records.
  const ids: string[] = [];
  const byId = { ...NO_FILTER, all: filter.all.filter(({ field }) => field.name === "id") };
  let seenCount = 0;
  const examined = { rows: 0, bytes: 0 };
  for (let last: string | null = null; ; ) {
    const behind =
      last === null ? NO_FILTER : parseFilter(table.model, [["id", ">", last]], { name: "id", conditionsMax: 1 });
    const matching = matchesOf(table.model, withBoth(byId, behind), read);
    const { records, isCut } = await firstById(table, file, matching, { limit, caller });
    seenCount += records.length;
    if (seenCount > RULE_RECORDS_MAX) throw tooManyToAsk();
    const answers = await Promise.all(records.map((record) => rights.coversRead(read, asker, table.model, record)));
    let cost = 0;
    for (const [index, record] of records.entries()) {
      if (answers[index] !== true) continue;
      cost += boundedCost(filter, record);
      if (cost > CONDITION_COST_MAX) {
        await nextTurn();
        cost = 0;
      }
      if (matches(settledNow(file, filter, record, examined), record)) ids.push(String(record["id"]));
    }
    if ((records.length < limit && !isCut) || ids.length >= limit) return ids.slice(0, limit);
    last = String(records.at(-1)?.["id"]);
  }
}

/** Whether the caller may read the record; never without a read grant. */
const isReadable = (
  rights: RecordRights,
  read: Grant,
  context: WriteContext,
  table: Table,
  record: TableRecord,
): boolean => rights.covers(read, context, table.model, { record });

/** Changes one record. false: a rule or a hook refused. Errors: an invalid value or reference fails the whole request. [TB40] */
function changeOne(
  mutations: Mutations,
  context: WriteContext,
  grants: WriteGrants,
  table: Table,
  record: TableRecord,
  { patch }: ByFilter,
): boolean {
  const hooksBefore = context.afterCommit.length;
  try {
    context.tx.savepoint(() => {
      const id = String(record["id"]);
      if (patch === null) mutations.delete(context, grants, table, id, { known: record });
      else mutations.update(context, grants, table, id, patch, { known: record });
    });
    return true;
  } catch (cause) {
    if (cause instanceof Suspended || !(cause instanceof AppError)) throw cause;
    const isRefusal = cause.status === 401 || cause.status === 403 || cause instanceof Refusal;
    if (!isRefusal) throw cause;
    context.afterCommit.length = hooksBefore;
    return false;
  }
}
