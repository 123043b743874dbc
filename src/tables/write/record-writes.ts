import { authOf, type Principal } from "../../access/principal.ts";
import type { AppAccess } from "../../config/app/index.ts";
import type { TableHooks, TableRecord } from "../../config/types.ts";
import { AppError, type FieldProblems } from "../../kernel/errors.ts";
import { type JsonObject, ownValue } from "../../kernel/json/json.ts";
import type { Logger } from "../../kernel/logger.ts";
import { DeadlineError } from "../../kernel/time/deadline.ts";
import type { TableModel } from "../model/model.ts";
import { idProblem, refuse } from "../model/validation.ts";
import type { Table } from "../namespaces.ts";
import { constraintProblem } from "../problems.ts";
import { createReferences } from "../references/references.ts";
import type { RecordRights } from "../rules/access.ts";
import { Suspended } from "../rules/decisions.ts";
import type { AfterHook } from "./after-hooks.ts";
import { applyChanges, copied, serverChanges, withDefaults } from "./changes.ts";

import type { WriteContext } from "./write-context.ts";

const SERVER_TIMES = ["createdAt", "updatedAt"];

/** An unexpected error of a hook. The client gets 500 without details. [TB143] */
class HookFailure extends Error {
  constructor(table: Table, name: keyof TableHooks, cause: unknown) {
    super(`the ${name} hook of ${table.model.name} failed`, { cause });
  }
}

/** The changes of a record; `deletions` are keys that a schemaless record loses. */
export interface ChangeSet {
  changes: TableRecord;
  deletions: readonly string[];
}

/** Writes with hooks, references and constraints. The caller has asked the rules. */
export interface RecordWrites {
  /** The body as a valid record with defaults. Required fields may be missing where a hook can add them. Errors: 400. */
  prepare(context: WriteContext, table: Table, body: JsonObject, index: number): TableRecord;
  insert(context: WriteContext, table: Table, record: TableRecord): TableRecord;
  update(context: WriteContext, table: Table, stored: TableRecord, changeSet: ChangeSet): TableRecord;
  delete(context: WriteContext, table: Table, stored: TableRecord): void;
}

export function createRecordWrites(deps: {
  app: () => AppAccess;
  rights: RecordRights;
  logger: Logger;
  tableOf(model: TableModel): Table;
}): RecordWrites {
  const references = createReferences(deps);

  /** Calls a hook. Errors: its refusal; 503 where it does not settle in time; else `HookFailure`. */
  const asked = <T>(table: Table, name: keyof TableHooks, work: () => T, beforeFailure?: () => void): T => {
    try {
      return work();
    } catch (cause) {
      if (cause instanceof Suspended || cause instanceof AppError) throw cause;
      beforeFailure?.();
      if (!(cause instanceof DeadlineError)) throw new HookFailure(table, name, cause);
      deps.logger.error("a hook did not settle in time", { table: table.model.name, hook: name, cause });
      throw new AppError(503, `The ${name} hook of ${table.model.name} took too long`);
    }
  };

  return {
    prepare: (context, table, body, index) =>
      validated(
        table,
        withDefaults(table.model, body, { id: context.newId(index), now: context.now }),
        { isFinal: hook(table, "beforeInsert") === undefined },
        timesOfOthers(context.principal, table.model, body),
      ),

    insert(context, table, prepared) {
      const { tx, principal, decisions, now } = context;
      let record = prepared;
      const before = hook(table, "beforeInsert");
      if (before !== undefined) {
        const args: Parameters<typeof before> = [authOf(principal), copied(record), deps.app()];
        // The hook may have failed because of a missing field: then the client gets that problem.
        const required = () => validated(table, prepared, { isFinal: true });
        const replaced = asked(table, "beforeInsert", () => decisions.ask(before, args, record), required);
        if (replaced !== undefined && replaced !== null) {
          record = withDefaults(table.model, replaced, { id: String(record["id"]), now });
        }
        validated(table, record, { isFinal: true });
      }
      references.check(context, table, { stored: null, asked: prepared, next: record });
      constrained(table, () => table.store.insert(tx, record, context.texts));
      tx.change({ table: table.model.name, id: String(record["id"]), before: null, after: record });
      const after = hook(table, "afterInsert");
      if (after !== undefined) later(context, table, "afterInsert", (app) => after(copied(record), app));
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
        // A deleted key is null in the changes that the hook gets. [TB75]
        const shown = { ...changes, ...Object.fromEntries(deletions.map((name) => [name, null])) };
        const args: Parameters<typeof before> = [authOf(principal), copied(stored), copied(shown), deps.app()];
        const replaced = asked(table, "beforeUpdate", () => decisions.ask(before, args, [stored, shown]));
        if (replaced !== undefined && replaced !== null) {
          changes = changesOf(table, replaced);
          deletions = model.isSchemaless ? deletions.filter((name) => ownValue(changes, name) === null) : [];
        }
      }
      changes = { ...changes, ...serverChanges(model, now) };
      const next = applyChanges(model, stored, changes, deletions);
      references.check(context, table, { stored, asked: wanted, next });
      references.checkReferred(tx, table, stored, next);
      constrained(table, () => store.update(tx, id, changes, next, { isBounded: true, texts: context.texts }));
      tx.change({ table: model.name, id, before: stored, after: next });
      const after = hook(table, "afterUpdate");
      if (after !== undefined) later(context, table, "afterUpdate", (app) => after(copied(next), copied(stored), app));
      return next;
    },

    delete(context, table, stored) {
      const { principal, decisions } = context;
      const before = hook(table, "beforeDelete");
      if (before !== undefined) {
        asked(table, "beforeDelete", () =>
          decisions.ask(before, [authOf(principal), copied(stored), deps.app()], stored),
        );
      }
      constrained(table, () => references.delete(context, table, stored));
      const after = hook(table, "afterDelete");
      if (after !== undefined) later(context, table, "afterDelete", (app) => after(copied(stored), app));
    },
  };
}

function later({ afterCommit }: WriteContext, { model }: Table, name: keyof TableHooks, run: AfterHook["run"]): void {
  afterCommit.push({ table: model.name, name, run });
}

const hook = <Name extends keyof TableHooks>(table: Table, name: Name): TableHooks[Name] | undefined =>
  table.model.config.hooks?.[name];

function constrained<T>(table: Table, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    throw constraintProblem(table.model, cause) ?? cause;
  }
}

/** Only service keys and the server may set times, as imports do. [TB145] */
function timesOfOthers({ kind }: Principal, model: TableModel, body: JsonObject): FieldProblems | null {
  if (kind === "serviceKey" || kind === "server") return null;
  let problems: FieldProblems | null = null;
  for (const name of SERVER_TIMES) {
    if (ownValue(body, name) === undefined || !model.byName.has(name)) continue;
    problems ??= {};
    problems[name] = { code: "invalid_value", message: `${name} is set by the server` };
  }
  return problems;
}

/** Required fields may be missing unless `isFinal`. `known`: problems found before. */
function validated(
  table: Table,
  record: TableRecord,
  { isFinal }: { isFinal: boolean },
  known: FieldProblems | null = null,
): TableRecord {
  const problems = { ...table.validator.ofRecord(record), ...known };
  if (!isFinal) {
    for (const [name, { code }] of Object.entries(problems)) if (code === "required") delete problems[name];
  }
  const problem = idProblem(record["id"] ?? null);
  if (problem !== null) problems["id"] = problem;
  if (Object.keys(problems).length > 0) refuse(problems);
  return record;
}

/** The changes that a hook returned. Errors: 400 where they are not valid. */
function changesOf(table: Table, replaced: TableRecord): TableRecord {
  const { id: _id, createdAt: _createdAt, updatedAt: _updatedAt, ...named } = replaced;
  // Undefined members are left out.
  const changes: TableRecord = Object.fromEntries(Object.entries(named).filter(([, value]) => value !== undefined));
  const problems = table.validator.ofChanges(changes);
  if (problems !== null) refuse(problems);
  return changes;
}
