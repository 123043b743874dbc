import type { Clock } from "../../../../kernel/clock.ts";
import { AppError, badField, notFound } from "../../../../kernel/errors.ts";
import type { Ids } from "../../../../kernel/ids.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import { type Logger, silentLogger } from "../../../../kernel/logger.ts";
import { chain } from "../../../../kernel/maybe-promise.ts";
import { type Principal, SERVER } from "../../../access/principal.ts";
import type { TableAddress } from "../../../access/table-door.ts";
import type { AnyFilter, TableRecord } from "../../../config/types.ts";
import type { DatabaseFile, Transaction } from "../../../db/index.ts";
import { RESTARTS_MAX } from "../limits.ts";
import type { RuleScope } from "../lookups/calls.ts";
import { createTableLookups } from "../lookups/session.ts";
import { StoredBytes } from "../model/record-size.ts";
import { unreadable } from "../query/reads.ts";
import { createSources } from "../query/sources.ts";
import type { Namespace, Table } from "../records/namespaces.ts";
import { type Asker, createRecordRights, denied, type Grant, type RecordRights } from "../rules/access.ts";
import type { TableAction } from "../rules/calling.ts";
import { Decisions, Suspended } from "../rules/decisions.ts";
import { createInstanceRights, type InstanceRights } from "../rules/instance-access.ts";
import { type Patch, parsePatch, settledPatch } from "../write/changes.ts";
import { createMutations, type Mutations } from "../write/mutations.ts";
import { preparedRecord, type RecordWrites } from "../write/record-writes.ts";
import { NOT_PREPARED, type WriteContext } from "../write/write-context.ts";
import { createGranting } from "../write/writes.ts";
import { causeText, millisSince, type RuleName, RuleTrace, type TracedLookup } from "./trace.ts";

export interface TrialRequest {
  address: TableAddress;
  operations: readonly TableAction[];
  /** Id of a stored record. */
  id: string | null;
  /** Record used instead of a stored one. */
  record: JsonObject | null;
  /** Changes of an update. */
  data: JsonObject;
}

export interface TrialResult {
  operation: TableAction;
  allowed: boolean;
  /** Status of the answer to a real request, as far as rules decide it. */
  status: number;
  /** Rule that decided. A record that the read rule hides is neither changed nor deleted. */
  decidedBy: RuleName;
  /** Source text of the rule; null when there is none, which denies. */
  rule: string | null;
  /** Filter that the rule returned, or whether it allows. */
  answer: boolean | AnyFilter;
  lookups: TracedLookup[];
  /** Number of all lookups: `lookups` is bounded. */
  lookupCount: number;
  ms: number;
  /** Error of a failed rule, which denies, or of a refusal for another reason than rights; else null. */
  error: string | null;
}

/**
 * Tells what the rules would answer to a request of this caller, by the code that requests run, without a transaction: nothing is
 * written, and neither hooks nor constraints run. Errors: 400 for an invalid record or invalid changes; 404 for a missing address
 * or record.
 */
export type TryRules = (principal: Principal, request: TrialRequest) => Promise<TrialResult[]>;

interface TrialDeps {
  namespaces: ReadonlyMap<string, Namespace>;
  clock: Clock;
  ids: Ids;
}

export function createTrials(deps: TrialDeps): TryRules {
  const lookups = createTableLookups({ ...deps, logger: silentLogger });
  const instances = createInstanceRights({ ...deps, logger: silentLogger });
  const sources = createSources({ ...deps, instances, lookups });
  return async (principal, { address, operations, ...request }) => {
    const { namespace, table } = sources.find(address);
    if (table.model.view !== null) {
      const message = `table: ${address.table} is a view, whose read rule cannot be tried on a record`;
      throw badField("table", "invalid_value", message);
    }
    const { file } = await sources.forReading(SERVER, address);
    const record = recordOf(deps, table, file, request);
    const sent = request.record ?? record;
    const patch = settledPatch(parsePatch(table.model, table.validator, request.data), record, () => true);
    const results: TrialResult[] = [];
    // One after another, so that each is measured alone.
    for (const operation of operations) {
      results.push(await new Trial(deps, { principal, address, namespace, table, record, sent, patch }).run(operation));
    }
    return results;
  };
}

function recordOf(
  { clock, ids }: TrialDeps,
  table: Table,
  file: DatabaseFile | null,
  { id, record }: Pick<TrialRequest, "id" | "record">,
): TableRecord {
  if ((id === null) === (record === null)) throw badField("id", "invalid_value", "Give either id or record");
  if (record !== null) {
    const auto = { id: ids.uuid(), now: new Date(clock.now()).toISOString() };
    return preparedRecord(SERVER, table, record, auto);
  }
  const stored = file === null || id === null ? null : table.store.get(file, id);
  if (stored === null) throw notFound(`There is no record "${id}" in ${table.model.name}`);
  return stored;
}

interface Subject {
  principal: Principal;
  address: TableAddress;
  namespace: Namespace;
  table: Table;
  record: TableRecord;
  /** The record as it was sent. */
  sent: TableRecord;
  patch: Patch;
}

/** One operation, and the answers of its rules. */
class Trial {
  readonly #deps: TrialDeps;
  readonly #subject: Subject;
  readonly #trace = new RuleTrace();
  readonly #rules: RuleScope;
  readonly #rights: RecordRights;
  readonly #grants = new Map<TableAction, Grant>();
  readonly #errors = new Map<RuleName, string>();
  /** The last rule that denied the record, or the instance. */
  #deniedBy: RuleName | null = null;

  constructor(deps: TrialDeps, subject: Subject) {
    this.#deps = deps;
    this.#subject = subject;
    this.#rules = createTableLookups({ ...deps, logger: silentLogger })
      .begin()
      .scope(subject.address);
    this.#rights = this.#tracedRights();
  }

  async run(operation: TableAction): Promise<TrialResult> {
    const startedAt = performance.now();
    let status = operation === "insert" ? 201 : 200;
    let refusal: string | null = null;
    try {
      await this.#ask(operation);
    } catch (cause) {
      if (!(cause instanceof AppError)) throw cause;
      ({ status } = cause);
      if (!BY_RULES.has(status)) refusal = cause.message;
    }
    const ms = millisSince(startedAt);
    const allowed = status < 300;
    const decidedBy = allowed ? operation : (this.#deniedBy ?? operation);
    const grant = isAction(decidedBy) ? this.#grants.get(decidedBy) : undefined;
    return {
      operation,
      allowed,
      status,
      decidedBy,
      rule: this.#sourceOf(decidedBy),
      answer: grant?.kind === "filter" ? structuredClone(grant.answer) : allowed,
      ...this.#trace.lookupsOf(new Set(["open", "create", operation, decidedBy])),
      ms,
      error: refusal ?? this.#errors.get(decidedBy) ?? null,
    };
  }

  async #ask(operation: TableAction): Promise<void> {
    const { principal, table, record } = this.#subject;
    await this.#openInstance(operation);
    const asker = { principal, rules: this.#rules };
    if (operation === "read") {
      const grant = await this.#rights.grant(asker, table.model, "read");
      if (grant.kind === "none") throw denied(principal);
      if (await this.#rights.coversRead(grant, asker, table.model, record)) return;
      throw unreadable(principal, grant, table.model, String(record["id"]));
    }
    const grants = await createGranting(this.#rights)(asker, table.model, [operation]);
    await this.#changed(asker, (mutations, context) => {
      const { patch, sent } = this.#subject;
      const id = String(record["id"]);
      if (operation === "insert") mutations.insert(context, grants, table, sent, 0);
      else if (operation === "delete") mutations.delete(context, grants, table, id, { known: record });
      else mutations.update(context, grants, table, id, patch, { known: record });
    });
  }

  async #openInstance(operation: TableAction): Promise<void> {
    const { principal, address, namespace } = this.#subject;
    if (namespace.kind === "static") return;
    const id = address.instanceId;
    const isThere =
      (await this.#instances("open").open({ principal: SERVER, rules: this.#rules }, namespace, id)) !== null;
    const rule = operation === "insert" && !isThere ? "create" : "open";
    const asker = { principal, rules: this.#trace.scope(this.#rules, rule, { isFinal: true }) };
    try {
      // An instance is created by its first write, and there is none.
      if (rule === "create") await this.#instances(rule).openForWriting(asker, namespace, id);
      else await this.#instances(rule).open(asker, namespace, id);
    } catch (cause) {
      this.#deniedBy = rule;
      throw cause;
    }
  }

  #instances(rule: RuleName): InstanceRights {
    return createInstanceRights({ ...this.#deps, logger: this.#loggerOf(rule) });
  }

  /** Makes a change as requests do, but without a transaction: it runs again after each rule that it awaits. */
  async #changed(asker: Asker, change: (mutations: Mutations, context: WriteContext) => void): Promise<void> {
    const { clock, ids } = this.#deps;
    const mutations = createMutations({
      rights: this.#rights,
      writes: { ...NO_WRITES, prepare: () => this.#subject.record },
    });
    const decisions = new Decisions(clock);
    for (let restarts = 0; restarts <= RESTARTS_MAX; restarts++) {
      try {
        return change(mutations, {
          ...asker,
          tx: NO_TRANSACTION,
          decisions,
          now: new Date(clock.now()).toISOString(),
          newId: () => ids.uuid(),
          touched: new Set(),
          written: new Set(),
          prepared: NOT_PREPARED,
          cascadeCost: 0,
          linkedIds: 0,
          conditionCost: 0,
          related: { rows: 0, bytes: 0 },
          grantsAsked: 0,
          stored: new StoredBytes(),
          askAccount() {},
          afterCommit: [],
        });
      } catch (cause) {
        if (!(cause instanceof Suspended)) throw cause;
        await cause.settled;
      }
    }
    throw new Error("a trial has more rules than a request awaits");
  }

  /** Returns rights that trace the evaluated rule, its lookups, and its failure. */
  #tracedRights(): RecordRights {
    const names = new Map<Grant, TableAction>();
    const rightsOf = (action: TableAction) => createRecordRights({ ...this.#deps, logger: this.#loggerOf(action) });
    const scoped = <A extends Asker>(asker: A, action: TableAction, isFinal: boolean): A => ({
      ...asker,
      rules: this.#trace.scope(asker.rules, action, { isFinal }),
    });
    // Shared grants call no rule about a record.
    const nameOf = (grant: Grant): TableAction => names.get(grant) ?? "read";
    const judged = (action: TableAction, isCovered: boolean): boolean => {
      if (!isCovered) this.#deniedBy = action;
      return isCovered;
    };
    return {
      grant: (asker, model, action) =>
        chain(rightsOf(action).grant(scoped(asker, action, false), model, action), (grant) => {
          names.set(grant, action);
          this.#grants.set(action, grant);
          return grant;
        }),
      covers(grant, asker, model, about) {
        const action = nameOf(grant);
        return judged(action, rightsOf(action).covers(grant, scoped(asker, action, true), model, about));
      },
      hides(read, asker, model, record) {
        const isHidden = rightsOf("read").hides(read, scoped(asker, "read", true), model, record);
        return !judged("read", !isHidden);
      },
      coversRead(grant, asker, model, record) {
        const covered = rightsOf("read").coversRead(grant, scoped(asker, "read", true), model, record);
        return chain(covered, (isCovered) => judged("read", isCovered));
      },
    };
  }

  #loggerOf(rule: RuleName): Logger {
    return { ...silentLogger, error: (_, facts) => void this.#errors.set(rule, causeText(facts?.["cause"])) };
  }

  #sourceOf(rule: RuleName): string | null {
    const { namespace, table } = this.#subject;
    const declared = isAction(rule) ? table.model.config.access?.[rule] : namespace.config.access?.[rule];
    return declared === undefined ? null : String(declared);
  }
}

/** Statuses of refusals that mean only that a rule denies. */
const BY_RULES: ReadonlySet<number> = new Set([200, 201, 401, 403, 404]);

const isAction = (rule: RuleName): rule is TableAction => rule !== "open" && rule !== "create";

/** Writes nothing, and returns the record as it would be written. */
const NO_WRITES: RecordWrites = {
  prepare: (_context, _table, body) => body,
  insert: (_context, _table, record) => record,
  update: (_context, _table, stored) => stored,
  delete() {},
};

const NO_TRANSACTION = new Proxy({} as Transaction, {
  get() {
    throw new Error("A trial of rules has no transaction");
  },
});
