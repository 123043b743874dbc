import { badField, notFound } from "../../../../kernel/errors.ts";
import { jsonCopy, plainCopy } from "../../../../kernel/json/copy.ts";
import { isPromise } from "../../../../kernel/maybe-promise.ts";
import type { DatabaseTransaction, EnqueueJobOptions, TransactionTable } from "../../../config/app/index.ts";
import type { AnyFilter, TableRecord } from "../../../config/types.ts";
import type { OutboxRow } from "../../../db/index.ts";
import { parseFilter } from "../filters/filter.ts";
import { FILTER_CONDITIONS_MAX, LIMIT_MAX } from "../limits.ts";
import { preparedOf } from "../query/prepared-reads.ts";
import { notByRecord } from "../query/reads.ts";
import type { Table } from "../records/namespaces.ts";
import { seenBy, withOwnAddress } from "../records/users-view.ts";
import { denied } from "../rules/access.ts";
import { Suspended } from "../rules/decisions.ts";
import type { Asking, WriteGrants } from "../write/asking.ts";
import { parsePatch } from "../write/changes.ts";
import type { Mutations } from "../write/mutations.ts";
import { checkHasTarget, conflictColumn } from "../write/upserts.ts";
import type { WriteContext } from "../write/write-context.ts";
import type { Writes } from "../write/writes.ts";

/** Prepares a job of the config. Errors: those of `app.jobs.enqueue`. */
export type PrepareJob = (
  name: string,
  data: unknown,
  options?: EnqueueJobOptions,
) => Omit<OutboxRow, "names"> & { name: string };

interface HandleDeps {
  mutations: Mutations;
  writes: Writes;
  asking: Asking;
  prepareJob: PrepareJob;
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

interface Scope {
  deps: HandleDeps;
  context: WriteContext;
  /** Returns the number of the next insert, which determines its id. */
  nextIndex(): number;
  /** Throws when the function has returned. */
  assertOpen(): void;
}

function createTransactionTable({ deps, context, nextIndex, assertOpen }: Scope, table: Table): TransactionTable {
  const { mutations, writes, asking } = deps;
  const { model, validator } = table;
  const { tx, principal } = context;
  const seen = seenBy(principal, table);
  const { store } = seen;
  const shown = (record: TableRecord) => withOwnAddress(principal, model, record);
  const granted = new Map<string, WriteGrants>();
  const grantsFor = (actions: readonly Action[]): WriteGrants => {
    const key = actions.join();
    const known = granted.get(key);
    if (known !== undefined) return known;
    const grants = writes.grants(context, model, actions, {
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

  /** Performs all or nothing, so that the function may catch the error and continue. */
  const perform = <T extends object>(work: () => T): T => {
    assertOpen();
    const hooksBefore = context.afterCommit.length;
    try {
      return tx.savepoint<object>(work) as T;
    } catch (cause) {
      context.afterCommit.length = hooksBefore;
      if (cause instanceof Suspended) throw mustNotWait(table, "an access rule or a hook");
      throw cause;
    }
  };

  const find = (filter: AnyFilter, limit: number): TableRecord[] => {
    assertOpen();
    const { read } = grantsFor([]);
    if (read.kind === "none") throw denied(principal);
    if (read.kind === "record") throw notByRecord(principal);
    const parsed = parseFilter(seen.model, filter, { name: "filter", conditionsMax: FILTER_CONDITIONS_MAX });
    return store.matching(tx, preparedOf(seen).first(parsed, read, limit)).map(shown);
  };

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

  return {
    get: read,
    first: (filter) => find(filter, 1)[0] ?? null,
    list: (filter, options) => find(filter, limitOf(options?.limit)),
    exists: (filter) => find(filter, 1).length > 0,

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
}

const DONE = {};

/** Checks a limit. Errors: 400 for anything but a whole number from 0. */
function limitOf(limit = LIMIT_MAX): number {
  if (Number.isSafeInteger(limit) && limit >= 0) return Math.min(limit, LIMIT_MAX);
  throw badField("limit", "invalid_value", `limit must be a whole number from 0, got ${limit}`);
}

const mustNotWait = ({ model }: Table, what: string): Error =>
  new Error(
    `${what} of ${model.namespace}.${model.name} returned a promise: inside a transaction nothing can be awaited. ` +
      "Do what it waits for before the transaction, or after it",
  );
