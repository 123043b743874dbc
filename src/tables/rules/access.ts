import { RULE_TIMEOUT_MS } from "../../access/limits.ts";
import { authOf, type Principal } from "../../access/principal.ts";
import { createProbe, mayTakeMore } from "../../access/probe.ts";
import type { SaidBy } from "../../access/table-door.ts";
import type { Filter, Rule, TableRecord } from "../../config/types.ts";
import type { Clock } from "../../kernel/clock.ts";
import { type AppError, forbidden, unauthorized } from "../../kernel/errors.ts";
import type { Logger } from "../../kernel/logger.ts";
import { isPromise, type MaybePromise } from "../../kernel/maybe-promise.ts";
import { DeadlineError, within } from "../../kernel/time/deadline.ts";
import { FILTER_CONDITIONS_MAX, SLOW_RULE_LOGGED_EVERY_MS } from "../limits.ts";
import type { TableModel } from "../model/model.ts";
import { NO_FILTER, type ParsedFilter, parseConditions } from "../query/filter.ts";
import { matches } from "../query/filter-match.ts";
import { copied } from "../write/changes.ts";
import { type Decisions, Suspended } from "./decisions.ts";

export type TableAction = "read" | "insert" | "update" | "delete";
type RuleFunction = Exclude<Rule, boolean>;

/**
 * The result of a rule before it has seen a record: `all`, `none`, `filter`, or `record`: the rule is then called with
 * each record.
 */
export type Grant =
  | { kind: "all"; saidBy: SaidBy }
  | { kind: "none" }
  /** `answer`: the value that the rule returned, which the rule may change later. */
  | { kind: "filter"; filter: ParsedFilter; answer: Filter }
  | { kind: "record"; rule: RuleFunction };

const ALL: Grant = { kind: "all", saidBy: "config" };
const ALL_BY_RULE: Grant = { kind: "all", saidBy: "rule" };
const ALL_BY_FILTER: Grant = { kind: "all", saidBy: "filter" };
const NONE: Grant = { kind: "none" };

/** Rights to records. Every access to a record is checked here. [TB55] */
export interface RecordRights {
  /**
   * The grant of the action's rule, determined before the request's form is checked. `before`: an earlier grant, which is
   * returned again when the rule gives the same result.
   */
  grant(principal: Principal, model: TableModel, action: TableAction, before?: Grant | null): MaybePromise<Grant>;
  /** Whether the grant covers this record. Inside a transaction only: may throw `Suspended`. */
  covers(grant: Grant, principal: Principal, model: TableModel, decisions: Decisions, about: RecordPair): boolean;
  /** The same outside a transaction. */
  coversRead(grant: Grant, principal: Principal, model: TableModel, record: TableRecord): MaybePromise<boolean>;
}

interface RecordPair {
  record: TableRecord;
  next?: TableRecord;
}

/** 401 without credentials, 403 with them. [TB47] */
export const denied = (principal: Principal): AppError =>
  principal.kind === "anonymous" ? unauthorized() : forbidden();

/**
 * Logs rules that failed, which denies. Rules that do not settle in time are logged at intervals, because a list calls
 * them once per record.
 */
function createFailureLog({ clock, logger }: { clock: Clock; logger: Logger }) {
  const slowLoggedAt = new WeakMap<TableModel, number>();
  return (model: TableModel, cause: unknown): void => {
    const table = `${model.namespace}.${model.name}`;
    if (!(cause instanceof DeadlineError)) {
      logger.error("an access rule threw", { table, cause });
      return;
    }
    const loggedAt = slowLoggedAt.get(model);
    if (loggedAt !== undefined && clock.now() - loggedAt < SLOW_RULE_LOGGED_EVERY_MS) return;
    slowLoggedAt.set(model, clock.now());
    logger.error("an access rule did not settle in time and denies", { table, cause });
  };
}

export function createRecordRights(deps: { clock: Clock; logger: Logger }): RecordRights {
  const failed = createFailureLog(deps);
  /** A rule whose promise does not settle in time denies. [TB144] */
  const inTime = <T>(answer: Promise<T>): Promise<T> => within(deps.clock, RULE_TIMEOUT_MS, answer);

  /** `true` and a filter allow; every other value denies. [TB51] */
  const grantOf = (model: TableModel, answer: unknown, before: Grant | null = null): Grant => {
    if (answer === true) return ALL_BY_RULE;
    if (!Array.isArray(answer)) return NONE;
    if (answer.length === 0) return ALL_BY_FILTER;
    if (before?.kind === "filter" && Bun.deepEquals(before.answer, answer, true)) return before;
    try {
      return { kind: "filter", filter: parseRuleFilter(model, answer), answer };
    } catch (cause) {
      failed(model, cause);
      return NONE;
    }
  };
  const answerAbout = (model: TableModel, answer: unknown, record: TableRecord): boolean => {
    const grant = grantOf(model, answer);
    return grant.kind === "all" || (grant.kind === "filter" && matches(grant.filter, record));
  };
  const deny = (model: TableModel) => (cause: unknown) => {
    failed(model, cause);
    return false;
  };

  /**
   * A rule may read the record without declaring it as a parameter. A stand-in record detects that; the rule is then
   * called with each record. [TB80]
   */
  const probed = (model: TableModel, rule: RuleFunction, principal: Principal, before: Grant | null) => {
    const probe = createProbe<TableRecord>({});
    const grant = (answer: unknown): Grant =>
      probe.isSeen ? { kind: "record", rule } : grantOf(model, answer, before);
    const afterFailure = (cause: unknown): Grant => {
      if (!probe.isSeen) failed(model, cause);
      return grant(false);
    };
    try {
      const answer = rule(authOf(principal), probe.standIn, probe.standIn);
      if (!isPromise(answer)) return grant(answer);
      if (!probe.isSeen) return inTime(answer).then(grant, afterFailure);
      // The result for the stand-in is ignored.
      answer.catch(() => undefined);
      return grant(false);
    } catch (cause) {
      return afterFailure(cause);
    }
  };

  return {
    grant(principal, model, action, before = null) {
      if (principal.kind === "server") return ALL;
      if (principal.kind === "serviceKey") {
        return principal.scopes.allows("db", model.namespace, model.name, action) ? ALL : NONE;
      }
      const rule = model.config.access?.[action];
      if (typeof rule !== "function") return rule === true ? ALL : NONE;
      // A rule with a second parameter reads the record.
      if (rule.length > 1) return { kind: "record", rule };
      if (isUncounted(rule)) return probed(model, rule, principal, before);
      try {
        // Called without the records, which it does not declare.
        const answer = (rule as (auth: ReturnType<typeof authOf>) => unknown)(authOf(principal));
        if (!isPromise(answer)) return grantOf(model, answer, before);
        return inTime(answer)
          .catch(deny(model))
          .then((settled) => grantOf(model, settled, before));
      } catch (cause) {
        failed(model, cause);
        return NONE;
      }
    },

    covers(grant, principal, model, decisions, { record, next }) {
      if (grant.kind === "filter") return matches(grant.filter, record);
      if (grant.kind !== "record") return grant.kind === "all";
      const auth = authOf(principal);
      try {
        const answer = decisions.ask(grant.rule, [auth, copied(record), copied(next ?? record)], [record, next]);
        return answerAbout(model, answer, record);
      } catch (cause) {
        if (cause instanceof Suspended) throw cause;
        failed(model, cause);
        return false;
      }
    },

    coversRead(grant, principal, model, record) {
      if (grant.kind === "filter") return matches(grant.filter, record);
      if (grant.kind !== "record") return grant.kind === "all";
      try {
        const answer = grant.rule(authOf(principal), record, record);
        if (!isPromise(answer)) return answerAbout(model, answer, record);
        return inTime(answer)
          .catch(deny(model))
          .then((settled) => answerAbout(model, settled, record));
      } catch (cause) {
        failed(model, cause);
        return false;
      }
    },
  };
}

const uncounted = new WeakMap<RuleFunction, boolean>();

function isUncounted(rule: RuleFunction): boolean {
  const known = uncounted.get(rule);
  if (known !== undefined) return known;
  const isSo = mayTakeMore(rule);
  uncounted.set(rule, isSo);
  return isSo;
}

function parseRuleFilter(model: TableModel, filter: Filter): ParsedFilter {
  return {
    ...NO_FILTER,
    all: parseConditions(model, filter, { name: "rule", conditionsMax: FILTER_CONDITIONS_MAX }),
  };
}
