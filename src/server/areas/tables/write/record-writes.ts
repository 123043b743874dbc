import type { FieldProblems } from "../../../../kernel/errors.ts";
import { jsonCopy, plainCopy } from "../../../../kernel/json/copy.ts";
import { type JsonObject, ownValue } from "../../../../kernel/json/json.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import type { Principal } from "../../../access/principal.ts";
import type { AppAccess } from "../../../config/app/index.ts";
import type { TableRecord } from "../../../config/types.ts";
import { fieldValue, insertProblem, type NewFiles, NO_FILES, newFilesOf, withKnownFiles } from "../files/values.ts";
import { withInstants } from "../model/instants.ts";
import type { TableModel } from "../model/model.ts";
import { constraintProblem } from "../model/problems.ts";
import { idProblem, refuse } from "../model/validation.ts";
import type { Table } from "../records/namespaces.ts";
import { refuseAccountWrites } from "../records/users-view.ts";
import type { RecordRights } from "../rules/access.ts";
import { applyChanges, refuseOperators, serverChanges, withDefaults, withoutNull } from "./changes.ts";
import { createHookCalls, hook, later } from "./hook-calls.ts";
import { profileChanges } from "./profile.ts";
import { type CheckFar, createReferences } from "./references.ts";
import { recordKey, type WriteContext } from "./write-context.ts";

const SERVER_TIMES = ["createdAt", "updatedAt"];

/** Changes of a record; `deletions` are keys that a schemaless record loses. */
export interface ChangeSet {
  changes: TableRecord;
  deletions: readonly string[];
}

/** Writes with hooks, references and constraints. The caller has checked the rules. */
export type RecordWrites = ReturnType<typeof createRecordWrites>;

export function createRecordWrites(deps: {
  app: () => AppAccess;
  rights: RecordRights;
  logger: Logger;
  tableOf(model: TableModel): Table;
  checkFar: CheckFar;
}) {
  const references = createReferences(deps);
  const { call } = createHookCalls(deps);

  return {
    /** Returns the body as a valid record with defaults. Required fields may be missing if a hook can add them. Errors: 400. */
    prepare: (context: WriteContext, table: Table, body: JsonObject, index: number): TableRecord =>
      context.prepared.records.get(body)?.() ??
      preparedRecord(context.principal, table, body, { id: context.newId(index), now: context.now }, context.prepared),

    insert(context: WriteContext, table: Table, prepared: TableRecord): TableRecord {
      refuseAccountWrites(table.model, ["insert"]);
      const { tx, now } = context;
      let record = prepared;
      const before = hook(table, "beforeInsert");
      if (before !== undefined) {
        // The hook may have failed because of a missing field, which is then the problem that the client gets.
        const beforeFailure = () => validated(table, prepared, { isFinal: true });
        const records: [TableRecord] = [record];
        const about = { hook: "beforeInsert", records, beforeFailure } as const;
        const replaced = call(context, table, before, about);
        if (replaced !== undefined && replaced !== null) {
          // A copy, because the hook may return an object that it changes later.
          record = withDefaults(table.model, jsonCopy(replaced), { id: String(record["id"]), now });
        }
        validated(table, record, { isFinal: true, sent: prepared });
        const renamed = { idBefore: String(prepared["id"]), id: String(record["id"]) };
        record = withKnownFiles(table.model, record, [prepared], renamed);
      }
      references.check(context, table, { stored: null, asked: prepared, next: record });
      constrained(table, () => table.store.insert(tx, record, context.prepared.texts));
      tx.change({ table: table.model.name, id: String(record["id"]), before: null, after: record });
      context.written.add(recordKey(table.model, String(record["id"])));
      const after = hook(table, "afterInsert");
      if (after !== undefined) later(context, table, "afterInsert", (auth, app) => after(auth, plainCopy(record), app));
      return record;
    },

    update(
      context: WriteContext,
      table: Table,
      stored: TableRecord,
      { changes: wanted, deletions: asDeleted }: ChangeSet,
    ): TableRecord {
      const { tx, now } = context;
      const { model, store } = table;
      const id = String(stored["id"]);
      let changes = wanted;
      let deletions = asDeleted;
      const before = hook(table, "beforeUpdate");
      if (before !== undefined) {
        // A deleted key is null in the changes passed to the hook. [TB75]
        const shown = { ...changes, ...Object.fromEntries(deletions.map((name) => [name, null])) };
        const replaced = call(context, table, before, { hook: "beforeUpdate", records: [stored, shown] });
        if (replaced !== undefined && replaced !== null) {
          changes = changesOf(table, jsonCopy(replaced), { stored, sent: wanted });
          deletions = model.isSchemaless ? deletions.filter((name) => ownValue(changes, name) === null) : [];
        }
      }
      if (before !== undefined) changes = withKnownFiles(model, changes, [stored, wanted]);
      changes = { ...changes, ...serverChanges(model, now) };
      const next = applyChanges(model, stored, changes, deletions);
      references.check(context, table, { stored, asked: wanted, next });
      references.checkReferred(tx, table, stored, next);
      constrained(table, () => store.update(tx, id, changes, next, { isBounded: true, texts: context.prepared.texts }));
      const profile = model.isUsers ? profileChanges(stored, next) : null;
      if (profile !== null) context.askAccount(model, id, profile);
      tx.change({ table: model.name, id, before: stored, after: next });
      context.written.add(recordKey(model, id));
      const after = hook(table, "afterUpdate");
      if (after !== undefined) {
        later(context, table, "afterUpdate", (auth, app) => after(auth, plainCopy(next), plainCopy(stored), app));
      }
      return next;
    },

    delete(context: WriteContext, table: Table, stored: TableRecord): void {
      refuseAccountWrites(table.model, ["delete"]);
      const before = hook(table, "beforeDelete");
      if (before !== undefined) call(context, table, before, { hook: "beforeDelete", records: [stored] });
      constrained(table, () => references.delete(context, table, stored));
      const after = hook(table, "afterDelete");
      if (after !== undefined) later(context, table, "afterDelete", (auth, app) => after(auth, plainCopy(stored), app));
    },
  };
}

/** Returns the record that an insert writes. Required fields may be missing if a hook can add them. Errors: 400. */
export const preparedRecord = (
  principal: Principal,
  table: Table,
  body: JsonObject,
  auto: { id: string; now: string },
  { files, isTrial }: { files: NewFiles; isTrial: boolean } = { files: NO_FILES, isTrial: false },
): TableRecord => {
  refuseOperators(body);
  const record = withDefaults(table.model, body, auto);
  const problems: FieldProblems = { ...timesOfOthers(principal, table.model, body) };
  for (const column of table.model.files) {
    const problem = insertProblem(column, ownValue(body, column.name));
    if (problem !== null) problems[column.name] = problem;
    record[column.name] = fieldValue(column, newFilesOf(files, column, String(record["id"])));
  }
  const isFinal = !isTrial && hook(table, "beforeInsert") === undefined;
  return validated(table, record, { isFinal }, problems);
};

function constrained<T>(table: Table, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    throw constraintProblem(table.model, cause) ?? cause;
  }
}

/** Returns the problems of times set by a caller: only service keys and the server may set them, as imports do. [TB145] */
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

/**
 * Validates a record. Required fields may be missing unless `isFinal`. `sent`: the record before a hook; null when no hook has
 * changed it. `known`: problems found before.
 */
function validated(
  table: Table,
  record: TableRecord,
  { isFinal, sent = null }: { isFinal: boolean; sent?: TableRecord | null },
  known: FieldProblems | null = null,
): TableRecord {
  const found = table.validator.ofRecord(record);
  const problems = { ...(sent === null || found === null ? found : unquoted(found, record, sent)), ...known };
  if (!isFinal) {
    for (const [name, { code }] of Object.entries(problems)) if (code === "required") delete problems[name];
  }
  const problem = idProblem(record["id"] ?? null);
  if (problem !== null) problems["id"] = problem;
  if (Object.keys(problems).length > 0) refuse(problems);
  return record;
}

/** Returns the problems without values set by a hook, which the caller must not learn. [TB117] */
function unquoted(problems: FieldProblems, record: TableRecord, sent: TableRecord): FieldProblems {
  const all = Object.entries(problems).map(([name, { code, message }]) => {
    // A fault in JSON has the path of its member.
    const field = name.split(".")[0] ?? name;
    const isSent = ownValue(record, field) === ownValue(sent, field);
    return [name, { code, message: isSent ? message : message.replace(QUOTED, "") }];
  });
  return Object.fromEntries(all);
}

/** Value at the end of a problem's message. */
const QUOTED = /, got .*$/s;

/** Returns the changes that a hook returned for those that were sent. Errors: 400 when they are invalid. */
function changesOf(
  table: Table,
  replaced: TableRecord,
  { stored, sent }: { stored: TableRecord; sent: TableRecord },
): TableRecord {
  const { id: _id, createdAt: _createdAt, updatedAt: _updatedAt, ...named } = replaced;
  // Undefined members are left out.
  const changes: TableRecord = Object.fromEntries(Object.entries(named).filter(([, value]) => value !== undefined));
  // A datetime of 0.2 that was left as it is may be returned with the whole record. [TB684]
  const kept: TableRecord = {};
  for (const name of table.model.datetimes) {
    if (changes[name] === undefined || changes[name] !== stored[name]) continue;
    kept[name] = changes[name];
    delete changes[name];
  }
  const next = withoutNull(table.model, withInstants(table.model, changes));
  const problems = table.validator.ofChanges(next);
  if (problems !== null) refuse(unquoted(problems, next, sent));
  return { ...next, ...kept };
}
