import { RULE_TIMEOUT_MS } from "../../access/limits.ts";
import { authOf, type Principal } from "../../access/principal.ts";
import { createProbe, mayTakeMore } from "../../access/probe.ts";
import type { SaidBy } from "../../access/table-door.ts";
import type { Filter, Rule, TableRecord } from "../../config/types.ts";
import type { Clock } from "../../kernel/clock.ts";
import { DeadlineError, within } from "../../kernel/deadline.ts";
import { type AppError, forbidden, unauthorized } from "../../kernel/errors.ts";
import type { Logger } from "../../kernel/logger.ts";
import { isPromise, type MaybePromise } from "../../kernel/maybe-promise.ts";
import { FILTER_CONDITIONS_MAX, SLOW_RULE_LOGGED_EVERY_MS } from "../limits.ts";
import type { TableModel } from "../model/model.ts";
import { NO_FILTER, type ParsedFilter, parseConditions } from "../query/filter.ts";
import { matches } from "../query/filter-match.ts";
import { copied } from "../write/changes.ts";
import { type Decisions, Suspended } from "./decisions.ts";

export type TableAction = "read" | "insert" | "update" | "delete";
type RuleFunction = Exclude<Rule, boolean>;

/**
 * What a rule says before any record is looked at: everything, nothing, what a filter keeps, or "it depends on the
 * record", in which case `record` is the rule to ask about each.
 */
export type Grant =
  | { kind: "all"; saidBy: SaidBy }
  | { kind: "none" }
  /** `answer`: as the rule gave it; the array is the rule's own. */
  | { kind: "filter"; filter: ParsedFilter; answer: Filter }
  | { kind: "record"; rule: RuleFunction };

const ALL: Grant = { kind: "all", saidBy: "config" };
const ALL_BY_RULE: Grant = { kind: "all", saidBy: "rule" };
const ALL_BY_FILTER: Grant = { kind: "all", saidBy: "filter" };
const NONE: Grant = { kind: "none" };

/** The one door for rights to records: every way to a record asks here. Decisions 3. */
export interface Door {
  /**
   * What the rule of this action grants; asked before the request's form is examined. `before`: what it granted last, which
   * is given again when the rule says the same.
   */
  grant(principal: Principal, model: TableModel, action: TableAction, before?: Grant | null): MaybePromise<Grant>;
  /** Whether the grant covers this record. Inside a write only: may throw `Suspended`. */
  covers(grant: Grant, principal: Principal, model: TableModel, decisions: Decisions, about: RecordPair): boolean;
  /** The same for reads outside a write. */
  coversRead(grant: Grant, principal: Principal, model: TableModel, record: TableRecord): MaybePromise<boolean>;
}

interface RecordPair {
  record: TableRecord;
  next?: TableRecord;
}

/** Denied: 401 without credentials, 403 with them. Decisions 3. */
export const denied = (principal: Principal): AppError =>
  principal.kind === "anonymous" ? unauthorized() : forbidden();

/** Says of a rule that failed that it denies. Of those that do not answer once in a while: a list asks for each of its records. */
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
    logger.error("an access rule did not answer, which denies", { table, cause });
  };
}

export function createDoor(deps: { clock: Clock; logger: Logger }): Door {
  const failed = createFailureLog(deps);
  /** A rule that never answers denies. */
  const inTime = <T>(answer: Promise<T>): Promise<T> => within(deps.clock, RULE_TIMEOUT_MS, answer);

  /** `true` and a filter allow; every other value denies. */
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

  /** A rule that may take a record without declaring it shows by a stand-in whether it looks: then each is shown to it. */
  const probed = (model: TableModel, rule: RuleFunction, principal: Principal, before: Grant | null) => {
    const probe = createProbe<TableRecord>({});
    const grant = (answer: unknown): Grant =>
      probe.isSeen ? { kind: "record", rule } : grantOf(model, answer, before);
    const stumbled = (cause: unknown): Grant => {
      if (!probe.isSeen) failed(model, cause);
      return grant(false);
    };
    try {
      const answer = rule(authOf(principal), probe.standIn, probe.standIn);
      if (!isPromise(answer)) return grant(answer);
      if (!probe.isSeen) return inTime(answer).then(grant, stumbled);
      // What it says of nothing is of no interest.
      answer.catch(() => undefined);
      return grant(false);
    } catch (cause) {
      return stumbled(cause);
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
      // A rule declared with a second parameter looks at the record.
      if (rule.length > 1) return { kind: "record", rule };
      if (isUncounted(rule)) return probed(model, rule, principal, before);
      try {
        // Called without the records that it does not declare.
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
