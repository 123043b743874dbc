import type { Clock } from "../../../../kernel/clock.ts";
import { AppError } from "../../../../kernel/errors.ts";
import type { Ids } from "../../../../kernel/ids.ts";
import { chain, isPromise, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import { actorOf } from "../../../access/principal.ts";
import type { Principals } from "../../../access/principals.ts";
import type { DatabaseFile, Transaction } from "../../../db/index.ts";
import { RESTARTS_MAX } from "../limits.ts";
import type { RuleScope } from "../lookups/calls.ts";
import type { TableModel } from "../model/model.ts";
import { StoredBytes } from "../model/record-size.ts";
import { refuseViewWrites } from "../query/view-reads.ts";
import { askAccount } from "../records/asked-changes.ts";
import { refuseAccountWrites } from "../records/users-view.ts";
import { type Asker, denied, mayAllow, NONE, type RecordRights } from "../rules/access.ts";
import type { TableAction } from "../rules/calling.ts";
import { Decisions, Suspended } from "../rules/decisions.ts";
import type { WriteGrants } from "./asking.ts";
import type { AfterHooks } from "./hook-calls.ts";
import type { Auto } from "./prepared.ts";
import { type RecordTurn, RecordTurns } from "./record-turns.ts";
import { NOT_PREPARED, type Prepared, type WriteContext } from "./write-context.ts";

/** Keeps the answer of a write with an idempotency key, inside its transaction. */
export type KeepAnswer<T> = (tx: Transaction, result: T) => void;

/**
 * Runs a request's writes: the grants, then one transaction, which restarts after an awaited rule or hook, then the hooks after
 * it.
 */
export interface Writes {
  /**
   * Returns the grants for `actions` and for reading. Errors: 401 or 403 unless all of `actions` are granted; with `demand:
   * "either"`, one of them; with `"none"`, never. `isBatch`: a rule that has looked up other records refuses nothing yet, because
   * an earlier operation of the batch may change them. [TB204]
   */
  grants(
    asker: Asker,
    model: TableModel,
    actions: readonly Exclude<TableAction, "read">[],
    options?: { demand?: "each" | "either" | "none"; isBatch?: boolean },
  ): MaybePromise<WriteGrants>;
  /**
   * Runs `work` in a transaction. `file`: that of the rules' scope. `prepare` does what is possible before the transaction.
   * `keep` is called after `work`, with its result.
   */
  run<T>(
    file: DatabaseFile,
    asker: Asker,
    work: (context: WriteContext) => T,
    options?: { prepare?: (auto: Auto) => MaybePromise<Prepared>; keep?: KeepAnswer<T> | undefined },
  ): Promise<T>;
}

/** Returns `Writes.grants`, which needs no file. */
export const createGranting =
  (rights: RecordRights): Writes["grants"] =>
  (asker, model, actions, { demand = "each", isBatch = false } = {}) => {
    refuseViewWrites(model);
    // What a batch may have is asked before its operations are known.
    if (demand !== "either" || !actions.includes("delete")) refuseAccountWrites(model, actions);
    const asked = ["read" as const, ...actions].map((action) => rights.grant(asker, model, action));
    const settled = asked.some(isPromise) ? Promise.all(asked) : (asked as Awaited<(typeof asked)[number]>[]);
    return chain(settled, ([read = NONE, ...granted]) => {
      const isDenied = granted.map((grant) => grant.kind === "none" && !(isBatch && mayAllow(grant)));
      const isRefused = demand === "each" ? isDenied.includes(true) : !isDenied.includes(false);
      if (isRefused && demand !== "none") throw denied(asker.principal);
      const grants: WriteGrants = { read, insert: NONE, update: NONE, delete: NONE };
      for (const [index, action] of actions.entries()) grants[action] = granted[index] ?? NONE;
      return grants;
    });
  };

/** Whether the rule that has opened the instance by a lookup still allows it. May throw `Suspended`. [TB204] */
function isStillOpen(rules: RuleScope, decisions: Decisions): boolean {
  if (rules.reopen === null) return true;
  const call = rules.call();
  try {
    return decisions.ask(rules.reopen, [call.context], null, { call }) === true;
  } catch (cause) {
    if (cause instanceof Suspended) throw cause;
    return false;
  }
}

export function createWrites(deps: {
  rights: RecordRights;
  requirePresent: Principals["requirePresent"];
  clock: Clock;
  ids: Ids;
  afterHooks: AfterHooks;
  /** Resolves when accounts have what updates of their records have asked for. */
  accountsChanged(): Promise<void>;
}): Writes {
  const { rights, clock, ids, afterHooks } = deps;
  const turns = new RecordTurns(clock);

  /** Keeps the turn if it covers the records; else releases it first, because waiting with a held turn could deadlock. */
  const turnFor = async (
    file: DatabaseFile,
    touched: Set<string>,
    held: RecordTurn | null,
  ): Promise<RecordTurn | null> => {
    const records = new Set([...touched].map((record) => `${file.path} ${record}`));
    if (records.size === 0 || held?.covers(records) === true) return held;
    held?.release();
    return turns.take(records);
  };

  return {
    grants: createGranting(rights),

    async run(file, { principal, rules }, work, { prepare, keep } = {}) {
      const actor = actorOf(principal);
      const decisions = new Decisions(clock);
      const now = new Date(clock.now()).toISOString();
      const newIds: string[] = [];
      const newId = (index: number): string => {
        newIds[index] ??= ids.uuid();
        return newIds[index];
      };
      const prepared = prepare === undefined ? NOT_PREPARED : await prepare({ principal, now, newId });
      let turn: RecordTurn | null = null;
      try {
        for (let restarts = 0; restarts <= RESTARTS_MAX; restarts++) {
          const touched = new Set<string>();
          let afterCommit: WriteContext["afterCommit"] = [];
          let asksAccounts = false;
          try {
            // `work` is synchronous and returns a plain value.
            const result = await file.write<unknown>((tx) => {
              // Rules, hooks and searches may have been awaited since the caller was known. [HT136]
              deps.requirePresent(principal);
              tx.causedBy(actor);
              afterCommit = [];
              asksAccounts = false;
              const context: Omit<WriteContext, "tx"> = {
                principal,
                decisions,
                rules,
                now,
                newId,
                touched,
                written: new Set(),
                cascadeCost: 0,
                linkedIds: 0,
                grantsAsked: 0,
                conditionCost: 0,
                related: { rows: 0, bytes: 0 },
                stored: new StoredBytes(),
                prepared,
                askAccount(model, id, changes) {
                  asksAccounts = true;
                  askAccount(tx, model, id, changes);
                },
                afterCommit,
              };
              const result = rules.inside(tx, (observed) => {
                if (!isStillOpen(rules, decisions)) throw denied(principal);
                return work({ ...context, tx: observed });
              });
              keep?.(tx, result);
              return result as never;
            });
            if (asksAccounts) await deps.accountsChanged();
            if (afterCommit.length > 0) afterHooks.run(afterCommit);
            return result as ReturnType<typeof work>;
          } catch (cause) {
            if (!(cause instanceof Suspended)) throw cause;
            turn = await turnFor(file, touched, turn);
            await cause.settled;
          }
        }
      } finally {
        turn?.release();
      }
      throw new AppError(503, "The record kept changing while its access rule was awaited; try again");
    },
  };
}
