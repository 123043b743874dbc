import { authOf, type Principal } from "../access/principal.ts";
import type { AppAccess } from "../config/app-access.ts";
import type { TableHooks, TableRecord } from "../config/types.ts";
import type { Transaction } from "../db/index.ts";
import { AppError, conflict, notFound } from "../kernel/errors.ts";
import type { JsonObject } from "../kernel/json.ts";
import { type Door, denied, type Grant } from "./access.ts";
import { applyChanges, type Patch, resolvePatch, withDefaults } from "./changes.ts";
import { type Decisions, Suspended } from "./decisions.ts";
import type { Column, ReferenceEdge, TableModel } from "./model.ts";
import type { Namespace, Table } from "./namespaces.ts";
import { constraintProblem } from "./problems.ts";
import { idProblem, isOperator, refuse } from "./validation.ts";

/** Records that one delete may take with it; more is a job for several requests. */
const CASCADE_RECORDS_MAX = 10_000;

/** What one request's write knows while it runs inside its transaction. */
export interface WriteContext {
  tx: Transaction;
  principal: Principal;
  decisions: Decisions;
  /** ISO 8601; one time for the whole request, also when the write is run again. */
  now: string;
  /** An id for the n-th record without one; the same when the write is run again. */
  newId(index: number): string;
  /** Work for after the commit. Forgotten when the write is run again. */
  afterCommit: ((app: AppAccess) => unknown)[];
}

/** A hook said no: 400 with its message. Batch-by-filter leaves such a record as it is. */
export class HookRefusal extends AppError {
  constructor(message: string) {
    super(400, message);
  }
}

/** The grants a write needs, asked once before the request's form is examined. */
export interface WriteGrants {
  read: Grant;
  insert: Grant;
  update: Grant;
  delete: Grant;
}

export interface Mutations {
  insert(context: WriteContext, grants: WriteGrants, table: Table, body: JsonObject, index: number): TableRecord;
  update(context: WriteContext, grants: WriteGrants, table: Table, id: string, patch: Patch): TableRecord;
  delete(context: WriteContext, grants: WriteGrants, table: Table, id: string): void;
  upsert(
    context: WriteContext,
    grants: WriteGrants,
    table: Table,
    body: JsonObject,
    options: { target: Column; index: number; toPatch(body: JsonObject): Patch },
  ): { record: TableRecord; isNew: boolean };
}

/** The four ways to change a record, inside a transaction. All others (batch, batch-by-filter, app) are made of them. */
export function createMutations(deps: {
  door: Door;
  app: () => AppAccess;
  namespaceOf(model: TableModel): Namespace;
}): Mutations {
  const { door } = deps;

  const hook = <Name extends keyof TableHooks>(table: Table, name: Name) => table.model.config.hooks?.[name];

  /** What a hook throws is the client's answer, unless it is an error of ours. */
  const asked = <T>(work: () => T): T => {
    try {
      return work();
    } catch (cause) {
      if (cause instanceof Suspended || cause instanceof AppError) throw cause;
      throw new HookRefusal(cause instanceof Error ? cause.message : String(cause));
    }
  };
  const constrained = <T>(table: Table, work: () => T): T => {
    try {
      return work();
    } catch (cause) {
      throw constraintProblem(table.model, cause) ?? cause;
    }
  };

  const checkReferences = ({ tx }: WriteContext, table: Table, changes: TableRecord, next: TableRecord): void => {
    for (const edge of table.model.outgoing) {
      const value = changes[edge.column.name];
      if (value === undefined || value === null) continue;
      // A record may refer to itself before it is there.
      if (edge.to === table.model && next[edge.toColumn.name] === value) continue;
      const { store } = tableOf(edge.to);
      if (store.exists(tx, edge.toColumn, store.codec.toValue(edge.toColumn, value))) continue;
      const message = `${edge.column.name}: there is no record of ${edge.to.name} with ${edge.toColumn.name} ${JSON.stringify(value)}`;
      refuse({ [edge.column.name]: { code: "unknown_reference", message } });
    }
  };
  const tableOf = (model: TableModel): Table => {
    const table = deps.namespaceOf(model).tables.get(model.name);
    if (table === undefined) throw new Error(`no table ${model.name}`);
    return table;
  };

  const validated = (table: Table, record: TableRecord): TableRecord => {
    const problems = { ...table.validator.ofRecord(record) };
    const problem = idProblem(record["id"] ?? null);
    if (problem !== null) problems["id"] = problem;
    if (Object.keys(problems).length > 0) refuse(problems);
    return record;
  };

  const writeInsert = (context: WriteContext, table: Table, prepared: TableRecord): TableRecord => {
    const { tx, principal, decisions, afterCommit } = context;
    let record = prepared;
    const before = hook(table, "beforeInsert");
    if (before !== undefined) {
      const auth = authOf(principal);
      const replaced = asked(() => decisions.ask(before, [auth, { ...record }, deps.app()], record));
      if (replaced !== undefined && replaced !== null) {
        const auto = { id: String(record["id"]), now: context.now };
        record = validated(table, withDefaults(table.model, replaced, auto));
      }
    }
    checkReferences(context, table, record, record);
    constrained(table, () => table.store.insert(tx, record));
    tx.change({ table: table.model.name, id: String(record["id"]), before: null, after: record });
    const after = hook(table, "afterInsert");
    if (after !== undefined) afterCommit.push((app) => after(record, app));
    return record;
  };

  const writeUpdate = (context: WriteContext, table: Table, stored: TableRecord, asked_: ChangeSet): TableRecord => {
    const { tx, principal, decisions, afterCommit, now } = context;
    const { model } = table;
    let { changes } = asked_;
    const before = hook(table, "beforeUpdate");
    if (before !== undefined) {
      const auth = authOf(principal);
      const args: Parameters<typeof before> = [auth, { ...stored }, { ...changes }, deps.app()];
      const replaced = asked(() => decisions.ask(before, args, [stored, changes]));
      if (replaced !== undefined && replaced !== null) changes = changesOf(table, replaced);
    }
    changes = { ...changes, ...serverChanges(model, now) };
    const next = applyChanges(model, stored, changes, asked_.deletions);
    checkReferences(context, table, changes, next);
    propagate(context, table, stored, next);
    constrained(table, () => table.store.update(tx, String(stored["id"]), changes, next));
    tx.change({ table: model.name, id: String(stored["id"]), before: stored, after: next });
    const after = hook(table, "afterUpdate");
    if (after !== undefined) afterCommit.push((app) => after(next, stored, app));
    return next;
  };

  /** What others refer to cannot be renamed away under them. */
  const propagate = ({ tx }: WriteContext, table: Table, stored: TableRecord, next: TableRecord): void => {
    for (const edge of table.model.incoming) {
      const old = stored[edge.toColumn.name] ?? null;
      if (old === null || old === next[edge.toColumn.name]) continue;
      const from = tableOf(edge.from).store;
      if (from.exists(tx, edge.column, from.codec.toValue(edge.column, old))) throw referred(edge);
    }
  };

  const writeDelete = (context: WriteContext, table: Table, stored: TableRecord, budget: { records: number }): void => {
    const { tx } = context;
    const id = String(stored["id"]);
    if (budget.records-- <= 0) {
      throw conflict(`Deleting this would delete more than ${CASCADE_RECORDS_MAX} records that refer to it`);
    }
    for (const edge of table.model.incoming) release(context, edge, stored, budget);
    // A cycle of references may have come round to this record already.
    if (table.store.get(tx, id) === null) return;
    constrained(table, () => table.store.delete(tx, id));
    tx.change({ table: table.model.name, id, before: stored, after: null });
  };

  /** By `onDelete`: refuses, deletes or lets go of those that refer to `stored`. */
  const release = (
    context: WriteContext,
    edge: ReferenceEdge,
    stored: TableRecord,
    budget: { records: number },
  ): void => {
    const from = tableOf(edge.from);
    const wanted = stored[edge.toColumn.name] ?? null;
    if (wanted === null) return;
    const value = from.store.codec.toValue(edge.column, wanted);
    const isSelf = (record: TableRecord) => edge.from === edge.to && record["id"] === stored["id"];
    const found = from.store
      .referring(context.tx, edge.column, value, CASCADE_RECORDS_MAX + 1)
      .filter((one) => !isSelf(one));
    if (found.length > 0 && edge.onDelete === "restrict") throw referred(edge);
    for (const record of found) {
      if (edge.onDelete === "cascade") {
        if (from.store.get(context.tx, String(record["id"])) !== null) writeDelete(context, from, record, budget);
        continue;
      }
      if (budget.records-- <= 0) throw conflict(`More than ${CASCADE_RECORDS_MAX} records refer to this one`);
      const next = { ...record, [edge.column.name]: null };
      from.store.update(context.tx, String(record["id"]), { [edge.column.name]: null }, next);
      context.tx.change({ table: from.model.name, id: String(record["id"]), before: record, after: next });
    }
  };

  /** The stored record, if it exists for this caller. Errors: 404, or 401 where a rule would have looked at it. */
  const stored = (context: WriteContext, grants: WriteGrants, table: Table, id: string, grant: Grant): TableRecord => {
    const record = table.store.get(context.tx, id);
    const { principal, decisions } = context;
    const isHidden =
      record !== null &&
      grants.read.kind === "filter" &&
      !door.covers(grants.read, principal, table.model, decisions, { record });
    if (record !== null && !isHidden) return record;
    if (principal.kind === "anonymous" && grant.kind === "record") throw denied(principal);
    throw notFound(`There is no record "${id}" in ${table.model.name}`);
  };

  const insert: Mutations["insert"] = (context, grants, table, body, index) => {
    const record = prepareInsert(context, table, body, index);
    const { principal, decisions } = context;
    if (!door.covers(grants.insert, principal, table.model, decisions, { record })) throw denied(principal);
    return writeInsert(context, table, record);
  };

  const prepareInsert = (context: WriteContext, table: Table, body: JsonObject, index: number): TableRecord => {
    for (const [name, value] of Object.entries(body)) {
      if (!isOperator(value)) continue;
      refuse({
        [name]: { code: "invalid_value", message: `${name}: operators change a record, an insert takes values` },
      });
    }
    return validated(table, withDefaults(table.model, body, { id: context.newId(index), now: context.now }));
  };

  const update: Mutations["update"] = (context, grants, table, id, patch) => {
    const { principal, decisions } = context;
    const record = stored(context, grants, table, id, grants.update);
    const changes = resolvePatch(table.validator, patch, record);
    const isEmpty = Object.keys(changes).length === 0 && patch.deletions.length === 0;
    const next = applyChanges(table.model, record, changes, patch.deletions);
    if (!door.covers(grants.update, principal, table.model, decisions, { record, next })) throw denied(principal);
    return isEmpty ? record : writeUpdate(context, table, record, { changes, deletions: patch.deletions });
  };

  return {
    insert,
    update,
    delete(context, grants, table, id) {
      const { principal, decisions, afterCommit } = context;
      const record = stored(context, grants, table, id, grants.delete);
      if (!door.covers(grants.delete, principal, table.model, decisions, { record })) throw denied(principal);
      const before = hook(table, "beforeDelete");
      if (before !== undefined) {
        asked(() => decisions.ask(before, [authOf(principal), { ...record }, deps.app()], record));
      }
      writeDelete(context, table, record, { records: CASCADE_RECORDS_MAX });
      const after = hook(table, "afterDelete");
      if (after !== undefined) afterCommit.push((app) => after(record, app));
    },
    upsert(context, grants, table, body, { target, index, toPatch }) {
      const { principal, decisions } = context;
      const wanted = body[target.name];
      const existing = wanted === undefined || wanted === null ? null : table.store.getBy(context.tx, target, wanted);
      const covers = (grant: Grant, record: TableRecord, next?: TableRecord) =>
        door.covers(grant, principal, table.model, decisions, next === undefined ? { record } : { record, next });
      const isMatching = table.model.config.access?.upsert === "matching";
      if (existing === null) {
        const record = prepareInsert(context, table, body, index);
        // Without a stored record a record-less update rule may still allow; one that looks at it has nothing to see.
        const byUpdate = !isMatching && grants.update.kind === "all";
        if (!covers(grants.insert, record) && !byUpdate) throw denied(principal);
        return { record: writeInsert(context, table, record), isNew: true };
      }
      const patch = toPatch(body);
      const changes = resolvePatch(table.validator, patch, existing);
      const next = applyChanges(table.model, existing, changes, patch.deletions);
      const allowed = covers(grants.update, existing, next) || (!isMatching && covers(grants.insert, next));
      if (!allowed) throw denied(principal);
      if (Object.keys(changes).length === 0) return { record: existing, isNew: false };
      return { record: writeUpdate(context, table, existing, { changes, deletions: [] }), isNew: false };
    },
  };
}

interface ChangeSet {
  changes: TableRecord;
  deletions: readonly string[];
}

const referred = (edge: ReferenceEdge) =>
  conflict(`Records of ${edge.from.name} refer to this one by ${edge.column.name}`);

/** What a hook returned as the changes to write. Errors: 400 where they do not fit. */
function changesOf(table: Table, replaced: TableRecord): TableRecord {
  const { id: _id, createdAt: _createdAt, updatedAt: _updatedAt, ...changes } = replaced;
  const problems = table.validator.ofChanges(changes);
  if (problems !== null) refuse(problems);
  return changes;
}

/** `updatedAt` and the fields that take the time of each change. */
function serverChanges(model: TableModel, now: string): TableRecord {
  const changes: TableRecord = {};
  for (const { name, field } of model.columns) if (field?.onUpdate === "now") changes[name] = now;
  if (model.hasUpdatedAt) changes["updatedAt"] = now;
  return changes;
}
