import { badRequest, notFound } from "../../../../kernel/errors.ts";
import { jsonCopy, plainCopy } from "../../../../kernel/json/copy.ts";
import { isPromise } from "../../../../kernel/maybe-promise.ts";
import { formerMethods, SourceQuery } from "../../../../kernel/records/record-query.ts";
import type { DatabaseTransaction, EnqueueJobOptions, TransactionTable } from "../../../config/app/index.ts";
import type { TableRecord } from "../../../config/types.ts";
import type { DatabaseFile, OutboxRow } from "../../../db/index.ts";
import type { FormerForms } from "../dialect/former-forms.ts";
import type { TableModel } from "../model/model.ts";
import type { Table } from "../records/namespaces.ts";
import { seenBy, withOwnAddress } from "../records/users-view.ts";
import { denied, type Grant } from "../rules/access.ts";
import { Behind, Suspended } from "../rules/decisions.ts";
import type { Asking, WriteGrants } from "../write/asking.ts";
import { parsePatch } from "../write/changes.ts";
import type { Mutations } from "../write/mutations.ts";
import { checkHasTarget, conflictColumn } from "../write/upserts.ts";
import type { WriteContext } from "../write/write-context.ts";
import type { Writes } from "../write/writes.ts";
import { transactionSource } from "./reading.ts";

/** Prepares a job of the config. Errors: those of `app.jobs.enqueue`. */
export type PrepareJob = (
  name: string,
  data: unknown,
  options?: EnqueueJobOptions,
) => Omit<OutboxRow, "names"> & { name: string };

export interface HandleDeps {
  mutations: Mutations;
  writes: Writes;
  asking: Asking;
  prepareJob: PrepareJob;
  former: FormerForms;
  tableOf(model: TableModel): Table;
  /** Returns the file of a namespace without instances. */
  fileOf(namespace: string): DatabaseFile;
}

type Action = "insert" | "update" | "delete";

/** The `tx` of one call of `app.db(…).transaction`. `end` makes it unusable. */
export interface TransactionHandle {
  tx: DatabaseTransaction;
  end(): void;
}

/**
 * Returns the handle of a transaction. Errors of its methods: those of the HTTP endpoints; an `Error` when a rule or hook has to
 * be awaited.
 */
export function createTransactionHandle(
  deps: HandleDeps,
  context: WriteContext,
  tables: ReadonlyMap<string, Table>,
): TransactionHandle {
  const known = new Map<string, TransactionTable>();
  let isOver = false;
  let insertCount = 0;
  const scope: Scope = {
    deps,
    context,
    grantsOf: createGrants(deps, context),
    nextIndex: () => insertCount++,
    assertOpen() {
      if (isOver) throw new Error("The transaction is over: its function has returned");
    },
  };
  return {
    tx: {
      table(name) {
        const found = known.get(name);
        if (found !== undefined) return found;
        const table = tables.get(name);
        if (table === undefined) throw notFound(`There is no table "${name}" in this namespace`);
        if (table.model.view !== null) {
          throw badRequest(`${name} is a view, and no part of a transaction: its SQL runs in another process`);
        }
        const made = createTransactionTable(scope, table);
        known.set(name, made);
        return made;
      },
      enqueue(name, data, options) {
        scope.assertOpen();
        // A user cannot enqueue jobs over HTTP either.
        if (context.principal.kind !== "server") throw denied(context.principal);
        const { name: job, ...row } = deps.prepareJob(name, data, options);
        context.tx.enqueue({ ...row, names: [job] });
        return row.id;
      },
    },
    end() {
      isOver = true;
    },
  };
}

type Grants = (table: Table, actions: readonly Action[]) => WriteGrants;

/** Returns the rights of the transaction's caller. Errors: 401, 403; a rule that has to be awaited. */
function createGrants({ writes }: HandleDeps, context: WriteContext): Grants {
  const granted = new Map<string, WriteGrants>();
  return (table, actions) => {
    const { namespace, name } = table.model;
    const key = `${namespace} ${name} ${actions.join()}`;
    const known = granted.get(key);
    if (known !== undefined) return known;
    const { principal, rules } = context;
    const isOwn = namespace === rules.about.namespace;
    const asker = { principal, rules: isOwn ? rules : rules.at(namespace) };
    const grants = writes.grants(asker, table.model, actions, {
      demand: actions.length > 1 ? "either" : "each",
    });
    if (isPromise(grants)) {
      grants.catch(() => {});
      throw mustNotWait(table, "an access rule");
    }
    // A rule that has looked up other records is evaluated each time: the transaction may have changed them.
    if (Object.values(grants).every((grant) => grant.kind === "record" || grant.again === null))
      granted.set(key, grants);
    return grants;
  };
}

interface Scope {
  deps: HandleDeps;
  context: WriteContext;
  grantsOf: Grants;
  /** Returns the number of the next insert, which determines its id. */
  nextIndex(): number;
  /** Throws when the function has returned. */
  assertOpen(): void;
}

function createTransactionTable(scope: Scope, table: Table): TransactionTable {
  const { deps, context, grantsOf, nextIndex, assertOpen } = scope;
  const { mutations, asking, tableOf, fileOf } = deps;
  const { model, validator } = table;
  const { tx, principal } = context;
  const { store } = seenBy(principal, table);
  const shown = (record: TableRecord) => withOwnAddress(principal, model, record);
  const grantsFor = (actions: readonly Action[]) => grantsOf(table, actions);

  /** Performs all or nothing, so that the function may catch the error and continue. */
  const perform = <T extends object>(work: () => T): T => {
    assertOpen();
    const hooksBefore = context.afterCommit.length;
    try {
      return tx.savepoint<object>(work) as T;
    } catch (cause) {
      context.afterCommit.length = hooksBefore;
      if (cause instanceof Suspended && !(cause instanceof Behind)) {
        throw mustNotWait(table, "an access rule or a hook");
      }
      throw cause;
    }
  };

  const readGrant = (other: Table): Grant => {
    assertOpen();
    return grantsOf(other, []).read;
  };
  const reads = transactionSource({ context, table, readGrant, tableOf, fileOf });
  const former = deps.former.of(`${model.namespace}.${model.name}`);
  const byId = (filter: unknown, limit: number) => reads.find({ filter, sort: null, limit, offset: 0 });

  /** Returns the record as GET does; null for an HTTP 404. Errors: 401, 403. */
  const read = (id: string): TableRecord | null => {
    assertOpen();
    const grants = grantsFor([]);
    const { kind } = grants.read;
    if (kind === "none") throw denied(principal);
    const record = store.get(tx, id, asking.behindRule(context, grants.read, table));
    if (record === null) {
      if (kind === "record" && principal.kind === "anonymous") throw denied(principal);
      return null;
    }
    try {
      if (asking.covers(context, grants.read, table, { record })) return shown(record);
    } catch (cause) {
      if (cause instanceof Suspended) throw mustNotWait(table, "the read rule");
      throw cause;
    }
    if (kind === "record") throw denied(principal);
    return null;
  };

  const writing: Pick<TransactionTable, "get" | "insert" | "upsert" | "update" | "delete"> = {
    get: read,
    insert(record) {
      const body = jsonCopy(record);
      return perform(() => plainCopy(mutations.insert(context, grantsFor(["insert"]), table, body, nextIndex())));
    },
    upsert(record, options) {
      const body = jsonCopy(record);
      return perform(() => {
        const target = conflictColumn(model, options?.conflictTarget ?? "id");
        checkHasTarget(body, target);
        const grants = grantsFor(["insert", "update"]);
        return plainCopy(mutations.upsert(context, grants, table, body, { target, index: nextIndex() }).record);
      });
    },
    update(id, changes) {
      const body = jsonCopy(changes);
      return perform(() => {
        const patch = parsePatch(model, validator, body);
        return plainCopy(mutations.update(context, grantsFor(["update"]), table, id, patch));
      });
    },
    delete(id) {
      perform(() => {
        mutations.delete(context, grantsFor(["delete"]), table, id);
        return DONE;
      });
    },
  };
  // The types of a query's fields and paths are those of the config.
  return Object.assign(
    new SourceQuery(reads),
    formerMethods(reads, byId, former),
    writing,
  ) as unknown as TransactionTable;
}

const DONE = {};

const mustNotWait = ({ model }: Table, what: string): Error =>
  new Error(
    `${what} of ${model.namespace}.${model.name} returned a promise: inside a transaction nothing can be awaited. ` +
      "Do what it waits for before the transaction, or after it",
  );
