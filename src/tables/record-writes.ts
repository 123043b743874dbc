import { authOf, type Principal } from "../access/principal.ts";
import type { AppAccess } from "../config/app-access.ts";
import type { TableHooks, TableRecord } from "../config/types.ts";
import type { Transaction } from "../db/index.ts";
import { AppError } from "../kernel/errors.ts";
import { type JsonObject, ownValue } from "../kernel/json.ts";
import type { Door } from "./access.ts";
import { applyChanges, copied, serverChanges, withDefaults } from "./changes.ts";
import { type Decisions, Suspended } from "./decisions.ts";
import type { TableModel } from "./model.ts";
import type { Table } from "./namespaces.ts";
import { constraintProblem } from "./problems.ts";
import { recordSizeProblem } from "./record-size.ts";
import { createReferences } from "./references.ts";
import { idProblem, refuse } from "./validation.ts";

/** What one request's write knows while it runs inside its transaction. */
export interface WriteContext {
  tx: Transaction;
  principal: Principal;
  decisions: Decisions;
  /** ISO 8601; one time for the whole request, also when the write is run again. */
  now: string;
  /** An id for the n-th record without one; the same when the write is run again. */
  newId(index: number): string;
  /** The stored records that it is about: those whose turn it waits for when a rule has to be awaited. */
  touched: Set<string>;
  /** Work for after the commit. Forgotten when the write is run again. */
  afterCommit: ((app: AppAccess) => unknown)[];
}

/** A hook said no: 400 with its message. Batch-by-filter leaves such a record as it is. */
export class HookRefusal extends AppError {
  constructor(message: string) {
    super(400, message);
  }
}

/** What to change; `deletions` are keys that a schemaless record loses. */
export interface ChangeSet {
  changes: TableRecord;
  deletions: readonly string[];
}

/** Writing with hooks, references and constraints. Whoever calls has asked the rules before. */
export interface RecordWrites {
  /** The body as a whole, valid record; what is required may still be missing where a hook can fill it in. Errors: 400. */
  prepare(context: WriteContext, table: Table, body: JsonObject, index: number): TableRecord;
  insert(context: WriteContext, table: Table, record: TableRecord): TableRecord;
  update(context: WriteContext, table: Table, stored: TableRecord, changeSet: ChangeSet): TableRecord;
  delete(context: WriteContext, table: Table, stored: TableRecord): void;
}

export function createRecordWrites(deps: {
  app: () => AppAccess;
  door: Door;
  tableOf(model: TableModel): Table;
}): RecordWrites {
  const references = createReferences(deps);

  return {
    prepare: (context, table, body, index) =>
      validated(table, withDefaults(table.model, body, { id: context.newId(index), now: context.now }), {
        isFinal: hook(table, "beforeInsert") === undefined,
      }),

    insert(context, table, prepared) {
      const { tx, principal, decisions, now } = context;
      let record = prepared;
      const before = hook(table, "beforeInsert");
      if (before !== undefined) {
        const args: Parameters<typeof before> = [authOf(principal), copied(record), deps.app()];
        // A hook that stumbles over what is missing: the client is told what that is.
        const replaced = asked(() => decisions.ask(before, args, record), {
          beforeRefusal: () => validated(table, prepared, { isFinal: true }),
        });
        if (replaced !== undefined && replaced !== null) {
          record = withDefaults(table.model, replaced, { id: String(record["id"]), now });
        }
        validated(table, record, { isFinal: true });
      }
      bounded(table, record);
      references.check(context, table, { stored: null, asked: prepared, next: record });
      constrained(table, () => table.store.insert(tx, record));
      tx.change({ table: table.model.name, id: String(record["id"]), before: null, after: record });
      const after = hook(table, "afterInsert");
      if (after !== undefined) context.afterCommit.push((app) => after(copied(record), app));
      return record;
    },

    update(context, table, stored, { changes: wanted, deletions: asDeleted }) {
      const { tx, principal, decisions, now } = context;
      const { model, store } = table;
      const id = String(stored["id"]);
      let changes = wanted;
      let deletions = asDeleted;
      const before = hook(table, "beforeUpdate");
      if (before !== undefined) {
        // A key that goes is a null among the changes, as in a table with a schema.
        const shown = { ...changes, ...Object.fromEntries(deletions.map((name) => [name, null])) };
        const args: Parameters<typeof before> = [authOf(principal), copied(stored), copied(shown), deps.app()];
        const replaced = asked(() => decisions.ask(before, args, [stored, shown]));
        if (replaced !== undefined && replaced !== null) {
          changes = changesOf(table, replaced);
          deletions = model.isSchemaless ? deletions.filter((name) => ownValue(changes, name) === null) : [];
        }
      }
      changes = { ...changes, ...serverChanges(model, now) };
      const next = applyChanges(model, stored, changes, deletions);
      bounded(table, next);
      references.check(context, table, { stored, asked: wanted, next });
      references.checkReferred(tx, table, stored, next);
      constrained(table, () => store.update(tx, id, changes, next));
      tx.change({ table: model.name, id, before: stored, after: next });
      const after = hook(table, "afterUpdate");
      if (after !== undefined) context.afterCommit.push((app) => after(copied(next), copied(stored), app));
      return next;
    },

    delete(context, table, stored) {
      const { principal, decisions } = context;
      const before = hook(table, "beforeDelete");
      if (before !== undefined) {
        asked(() => decisions.ask(before, [authOf(principal), copied(stored), deps.app()], stored));
      }
      constrained(table, () => references.delete(context, table, stored));
      const after = hook(table, "afterDelete");
      if (after !== undefined) context.afterCommit.push((app) => after(copied(stored), app));
    },
  };
}

const hook = <Name extends keyof TableHooks>(table: Table, name: Name): TableHooks[Name] | undefined =>
  table.model.config.hooks?.[name];

/** What a hook throws is the client's answer, unless it is an error of ours. */
function asked<T>(work: () => T, { beforeRefusal }: { beforeRefusal?: () => void } = {}): T {
  try {
    return work();
  } catch (cause) {
    if (cause instanceof Suspended || cause instanceof AppError) throw cause;
    beforeRefusal?.();
    throw new HookRefusal(cause instanceof Error ? cause.message : String(cause));
  }
}

function constrained<T>(table: Table, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    throw constraintProblem(table.model, cause) ?? cause;
  }
}

/** Errors: 400 for a record that is too large. */
function bounded(table: Table, record: TableRecord): void {
  const problems = recordSizeProblem(table.model, record);
  if (problems !== null) refuse(problems);
}

/** Before it is final, a record may lack what is required. */
function validated(table: Table, record: TableRecord, { isFinal }: { isFinal: boolean }): TableRecord {
  const problems = { ...table.validator.ofRecord(record) };
  if (!isFinal) {
    for (const [name, { code }] of Object.entries(problems)) if (code === "required") delete problems[name];
  }
  const problem = idProblem(record["id"] ?? null);
  if (problem !== null) problems["id"] = problem;
  if (Object.keys(problems).length > 0) refuse(problems);
  return record;
}

/** What a hook returned as the changes to write. Errors: 400 where they do not fit. */
function changesOf(table: Table, replaced: TableRecord): TableRecord {
  const { id: _id, createdAt: _createdAt, updatedAt: _updatedAt, ...named } = replaced;
  // What is undefined is not named.
  const changes: TableRecord = Object.fromEntries(Object.entries(named).filter(([, value]) => value !== undefined));
  const problems = table.validator.ofChanges(changes);
  if (problems !== null) refuse(problems);
  return changes;
}
