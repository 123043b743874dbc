import { badField, notFound } from "../../../../kernel/errors.ts";
import { isJsonObject } from "../../../../kernel/json/json.ts";
import { isPromise, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import type { Scheduler } from "../../../../kernel/time/scheduler.ts";
import type { Principal } from "../../../access/principal.ts";
import type { DatabaseTransaction } from "../../../config/app/index.ts";
import type { TableRecord } from "../../../config/types.ts";
import type { ReadCaller } from "../../../db/index.ts";
import { CONDITION_VALUES_MAX } from "../limits.ts";
import type { Column } from "../model/model.ts";
import { atOperation } from "../model/problems.ts";
import { isLarge } from "../model/record-size.ts";
import type { Operation, TransactionBody } from "../model/requests.ts";
import type { FileAddress, Sources } from "../query/sources.ts";
import type { Namespace, Table } from "../records/namespaces.ts";
import { type Asker, denied, mayAllow } from "../rules/access.ts";
import type { WriteGrants } from "../write/asking.ts";
import { parsePatch } from "../write/changes.ts";
import type { FindConditions, Precondition } from "../write/conditions.ts";
import type { Mutations } from "../write/mutations.ts";
import { checkPatternCost, Operations, type Place, type PlacedRecord } from "../write/operations.ts";
import { type LargeBody, prepareLarge } from "../write/prepared.ts";
import { checkHasTarget, conflictColumn } from "../write/upserts.ts";
import type { WriteContext } from "../write/write-context.ts";
import type { KeepAnswer, Writes } from "../write/writes.ts";
import { createTransactionHandle, type HandleDeps } from "./handle.ts";

export interface TransactionResult {
  results: TableRecord[];
  /** Table of each result. */
  tables: readonly string[];
}

type Action = "insert" | "update" | "delete";
const WRITING: readonly Action[] = ["insert", "update", "delete"];

/** An operation with its table. */
interface Step {
  readonly operation: Operation;
  readonly table: Table;
  readonly place: Place;
  readonly condition: Precondition | null;
}

export function createTransactions(deps: {
  sources: Sources;
  writes: Writes;
  mutations: Mutations;
  conditions: { find: FindConditions };
  turns: Scheduler;
  namespaces: ReadonlyMap<string, Namespace>;
}) {
  const { sources, writes, mutations, conditions, turns, namespaces } = deps;
  return {
    /**
     * Runs a transaction. Errors, in this order: 404 for the namespace, 401, 403, 400, 404 for a table; then those of the
     * operations. [TB304]
     */
    async transact(
      principal: Principal,
      address: FileAddress,
      body: () => MaybePromise<TransactionBody>,
      { caller, keep }: { caller?: ReadCaller; keep?: KeepAnswer<TransactionResult> | undefined } = {},
    ): Promise<TransactionResult> {
      const namespace = namespaces.get(address.namespace);
      if (namespace !== undefined && !mayWriteIn(principal, namespace)) throw denied(principal);
      const { tables, file, rules } = await sources.forTransaction(principal, address);
      const { operations } = await body();
      const [any] = tables.values();
      const filters = operations.map((operation) => ("if" in operation ? operation.if : null));
      const found = await conditions.find({ principal, rules }, any?.model, filters);
      const steps = stepsOf(operations, tables, { namespace: address.namespace, conditions: found });
      const grants = await grantsOf(writes, { principal, rules }, steps);
      checkPatternCost(placedRecords(steps));
      const tableNames = steps.map(({ table }) => table.model.name);
      const change = (context: WriteContext) => ({
        results: runSteps(mutations, context, grants, steps),
        tables: tableNames,
      });
      const result = await writes.run(file, { principal, rules }, change, {
        prepare: (auto) => prepareLarge(bodiesOf(steps), auto, turns),
        keep,
      });
      // A large answer is sent in pieces, like that of a batch.
      if (isLarge(result.results)) caller?.keepUntilSent?.(() => {});
      return result;
    },
  };
}

/** Whether the caller may change any table at all. If not, errors reveal nothing about the form of a request. */
function mayWriteIn(principal: Principal, { tables, name }: Namespace): boolean {
  if (principal.kind === "server") return true;
  const allowed = (table: Table, action: Action): boolean => {
    if (principal.kind === "serviceKey") return principal.scopes.allows("db", name, table.model.name, action);
    const rule = table.model.config.access?.[action];
    return rule !== undefined && rule !== false;
  };
  return [...tables.values()].some((table) => WRITING.some((action) => allowed(table, action)));
}

/** Resolves the tables of the operations. Errors: 404 for an unknown table; 400 for too many values in conditions. */
function stepsOf(
  operations: readonly Operation[],
  tables: ReadonlyMap<string, Table>,
  { namespace, conditions }: { namespace: string; conditions: Awaited<ReturnType<FindConditions>> },
): Step[] {
  let values = 0;
  return operations.map((operation, index) => {
    const name = `operations.${index}`;
    const table = tables.get(operation.table);
    if (table === undefined) {
      const message = `There is no table "${operation.table}" in ${namespace}`;
      throw atOperation(notFound(message), `${name}.table`);
    }
    values += valuesOf(operation);
    if (values > CONDITION_VALUES_MAX) {
      const message = `${name}.if: the conditions of one transaction have at most ${CONDITION_VALUES_MAX} values together`;
      throw badField(`${name}.if`, "too_long", message);
    }
    const condition = "if" in operation ? conditions.ofOperation(table.model, operation.if, `${name}.if`) : null;
    return { operation, table, place: { operation: name, fields: `${name}.data` }, condition };
  });
}

/** Counts the values in an operation's condition, inside of its groups too: each is compared. */
const valuesOf = (operation: Operation): number => ("if" in operation ? valuesIn(operation.if) : 0);

function valuesIn(part: unknown): number {
  const sum = (parts: readonly unknown[]) => parts.reduce<number>((count, one) => count + valuesIn(one), 0);
  if (!Array.isArray(part)) return isJsonObject(part) ? sum(Object.values(part)) : 0;
  const [field, , value]: unknown[] = part;
  if (typeof field !== "string") return sum(part);
  return Array.isArray(value) ? value.length + 1 : 1;
}

/** Returns the target of an upsert. Errors: 400 naming the operation's `conflictTarget`. */
function targetOf({ model }: Table, name: string, { operation }: Place): Column {
  try {
    return conflictColumn(model, name);
  } catch (cause) {
    throw atOperation(cause, operation);
  }
}

const actionsOf = ({ action }: Operation): readonly Action[] => (action === "upsert" ? ["insert", "update"] : [action]);

/** Returns the grants for each table: per operation its own, for an upsert the insert or the update rule. Errors: 401, 403. */
async function grantsOf(
  writes: Writes,
  asker: Asker,
  steps: readonly Step[],
): Promise<ReadonlyMap<Table, WriteGrants>> {
  const wanted = new Map<Table, Set<Action>>();
  for (const { table, operation } of steps) {
    const actions = wanted.get(table) ?? new Set();
    for (const action of actionsOf(operation)) actions.add(action);
    wanted.set(table, actions);
  }
  const grants = new Map<Table, WriteGrants>();
  for (const [table, actions] of wanted) {
    grants.set(table, await writes.grants(asker, table.model, [...actions], { demand: "none" }));
  }
  for (const { table, operation, place } of steps) {
    const granted = grants.get(table);
    if (granted !== undefined && actionsOf(operation).some((action) => mayAllow(granted[action]))) continue;
    throw atOperation(denied(asker.principal), place);
  }
  return grants;
}

function* placedRecords(steps: readonly Step[]): Generator<PlacedRecord> {
  for (const { operation, table, place } of steps) {
    if ("data" in operation) yield { model: table.model, place: place.fields, record: operation.data };
  }
}

const bodiesOf = (steps: readonly Step[]): LargeBody[] =>
  steps.flatMap(({ operation, table }, index) =>
    "data" in operation ? [{ table, body: operation.data, index: operation.action === "update" ? null : index }] : [],
  );

/** Runs the operations in order inside one transaction, all or nothing. [TB304] */
function runSteps(
  mutations: Mutations,
  context: WriteContext,
  grants: ReadonlyMap<Table, WriteGrants>,
  steps: readonly Step[],
): TableRecord[] {
  const operations = new Operations(context);
  const results = steps.map((step, index) => {
    const granted = grants.get(step.table);
    if (granted === undefined) throw new Error(`no grants for ${step.table.model.name}`);
    return operations.run(step.place, () => runStep(mutations, context, granted, step, index));
  });
  operations.finish();
  return results.filter((result) => result !== null);
}

function runStep(
  mutations: Mutations,
  context: WriteContext,
  grants: WriteGrants,
  { operation, table, place, condition }: Step,
  index: number,
): TableRecord {
  switch (operation.action) {
    case "insert":
      return mutations.insert(context, grants, table, operation.data, index);
    case "update": {
      const patch = parsePatch(table.model, table.validator, operation.data);
      return mutations.update(context, grants, table, operation.id, patch, { condition });
    }
    case "upsert": {
      const target = targetOf(table, operation.conflictTarget ?? "id", place);
      checkHasTarget(operation.data, target);
      return mutations.upsert(context, grants, table, operation.data, { target, index, condition }).record;
    }
    case "delete":
      mutations.delete(context, grants, table, operation.id, { condition });
      return { id: operation.id };
  }
}

/** Transactions of the server's own code. */
export function createAppTransactions(deps: HandleDeps & { sources: Sources }) {
  return {
    /** Runs `work` with the rights of `principal`. Errors: those of its operations; what `work` throws. [TB310] */
    async transaction<T>(principal: Principal, address: FileAddress, work: (tx: DatabaseTransaction) => T): Promise<T> {
      const { tables, file, rules } = await deps.sources.forTransaction(principal, address);
      return deps.writes.run(file, { principal, rules }, (context) => {
        const handle = createTransactionHandle(deps, context, tables);
        try {
          const result = work(handle.tx);
          if (!isPromise(result)) return result;
          // Prevents an unhandled rejection of its own error.
          result.catch(() => {});
          throw new Error("The function of a transaction must be synchronous, and it returned a promise");
        } finally {
          handle.end();
        }
      });
    },
  };
}
