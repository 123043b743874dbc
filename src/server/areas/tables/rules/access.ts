import type { Clock } from "../../../../kernel/clock.ts";
import { type AppError, forbidden, reasonOf, unauthorized } from "../../../../kernel/errors.ts";
import { plainCopy } from "../../../../kernel/json/copy.ts";
import { readOnly } from "../../../../kernel/json/read-only.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { chain, isPromise, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import { askRule, awaiting } from "../../../../kernel/observing/request-trace.ts";
import { matches } from "../../../../kernel/records/filter-match.ts";
import { within } from "../../../../kernel/time/deadline.ts";
import { RULE_TIMEOUT_MS } from "../../../access/limits.ts";
import { authOf, type Principal } from "../../../access/principal.ts";
import { createProbe } from "../../../access/probe.ts";
import type { SaidBy } from "../../../access/table-door.ts";
import type { AnyFilter, Auth, TableRecord } from "../../../config/types.ts";
import { type ParsedFilter, parseFilter, relationsIn, withOwnValues } from "../filters/filter.ts";
import { FILTER_CONDITIONS_MAX } from "../limits.ts";
import type { RuleCall, RuleScope } from "../lookups/calls.ts";
import type { TableModel } from "../model/model.ts";
import { argumentsOf, callable, createFailureLog, type RecordRule, recordRule, type TableAction } from "./calling.ts";
import { type Decisions, Suspended } from "./decisions.ts";
import { settled, watchRelations } from "./relations.ts";

/**
 * Result of a rule before it has seen a record: `all`, `none`, `filter`, or `record`, with which the rule is then called for each
 * record. `again`: the rule has looked up other records, so a write calls it again in its transaction, which may have changed
 * them.
 */
export type Grant =
  | { kind: "all"; saidBy: SaidBy; again: RecordRule | null }
  | { kind: "none"; again: RecordRule | null }
  /** `answer`: the value returned by the rule, which the rule may change later. */
  | { kind: "filter"; filter: ParsedFilter; action: TableAction; answer: AnyFilter; again: RecordRule | null }
  | { kind: "record"; by: RecordRule };

/** Whether a rule's answer is a filter: a list, or an object, which has to be a group. */
const isFilter = (answer: unknown): answer is AnyFilter => typeof answer === "object" && answer !== null;

const ALL: Grant = { kind: "all", saidBy: "config", again: null };
export const NONE: Grant = { kind: "none", again: null };

/** Whether the grant may allow something inside a transaction, where earlier operations count. [TB204] */
export const mayAllow = (grant: Grant): boolean => grant.kind !== "none" || grant.again !== null;

/** Caller and scope with which the rules of one request are called. */
export interface Asker {
  principal: Principal;
  rules: RuleScope;
}

/** Rights to records. Checks every access to a record. [TB55] */
export interface RecordRights {
  /**
   * Returns the grant of the action's rule, determined before the request's form is checked. `before`: an earlier grant, which is
   * returned again when the rule has the same result. `call`: the call of the rule, for `Decisions.ask`. Errors: 503 when the
   * request's rules have looked up too much.
   */
  grant(
    asker: Asker,
    model: TableModel,
    action: TableAction,
    options?: { before?: Grant | null; call?: RuleCall | null },
  ): MaybePromise<Grant>;
  /** Whether the grant covers this record. Inside a transaction only: may throw `Suspended`. Errors: as `grant`. */
  covers(grant: Grant, asker: Asker & { decisions: Decisions }, model: TableModel, about: RecordPair): boolean;
  /**
   * Whether the filter that the read rule returns now hides this record. Inside a transaction only: may throw `Suspended`.
   * Errors: as `grant`. [TB204]
   */
  hides(read: Grant, asker: Asker & { decisions: Decisions }, model: TableModel, record: TableRecord): boolean;
  /** Whether the grant covers this record, as `covers`, outside a transaction. */
  coversRead(grant: Grant, asker: Asker, model: TableModel, record: TableRecord): MaybePromise<boolean>;
}

/** The record that a rule is called with. */
export interface RecordPair {
  record: TableRecord;
  /** Returns the record after the change. Called only when a rule needs it: a large one takes long to make. */
  next?: () => TableRecord;
  /** Returns the names of the members that the request has sent. Absent for reads and deletions. */
  sent?: () => readonly string[];
  /** Fields whose files have not arrived yet. Absent: all is known. */
  awaited?: AwaitedFiles;
}

/** Fields that have no value yet. `see` is called when a rule reads one, or what was sent. */
export interface AwaitedFiles {
  names: readonly string[];
  see(): void;
}

/** Returns a copy of the record that reports the reading of these fields. */
function watched(record: TableRecord, { names, see }: AwaitedFiles): TableRecord {
  const copy = { ...record };
  for (const name of names) {
    const value = copy[name];
    const get = () => {
      see();
      return value;
    };
    Object.defineProperty(copy, name, { get, enumerable: true });
  }
  return copy;
}

/** Returns 401 without credentials, 403 with them. [TB47] */
export const denied = (principal: Principal): AppError =>
  principal.kind === "anonymous" ? unauthorized() : forbidden();

/** Whether the grant depends on records of other tables, which may change without its rule answering otherwise. */
export const hasRelations = (grant: Grant): boolean =>
  grant.kind === "filter" && !relationsIn(grant.filter).next().done;

/** A rule that declares no record, and is called without. */
type PlainRule = (auth: Auth | null) => unknown;

/** Returns the name of a rule in the story of a request. */
export const ruleName = ({ namespace, name }: TableModel, action: TableAction): string =>
  `${namespace}.${name} ${action}`;

/** Calls rules, and turns their answers into grants. */
function createAnswers(deps: { clock: Clock; logger: Logger }) {
  const failed = createFailureLog(deps);
  /** Denies when a rule's promise does not settle in time. [TB144] */
  const inTime = <T>(answer: Promise<T>): Promise<T> => within(deps.clock, RULE_TIMEOUT_MS, answer);

  /** Returns the grant of an answer: `true` and a filter allow; every other value denies. [TB51] */
  const grantOf = (
    model: TableModel,
    action: TableAction,
    answer: unknown,
    { before = null, again = null }: { before?: Grant | null; again?: RecordRule | null } = {},
  ): Grant => {
    if (answer === true) return { kind: "all", saidBy: "rule", again };
    if (!isFilter(answer)) return again === null ? NONE : { kind: "none", again };
    if (Array.isArray(answer) && answer.length === 0) return { kind: "all", saidBy: "filter", again };
    if (before?.kind === "filter" && Bun.deepEquals(before.answer, answer, true)) return before;
    try {
      return { kind: "filter", filter: parseRuleFilter(model, answer), action, answer, again };
    } catch (cause) {
      const table = `${model.namespace}.${model.name}`;
      const problem = reasonOf(cause);
      deps.logger.error("an access rule returned an invalid filter and denies", { table, rule: action, problem });
      return NONE;
    }
  };
  /** Whether a grant that calls no rule covers the record. Errors: 503 when the request's rules have looked up too much. */
  const allowsRecord = (grant: Grant, rules: RuleScope, model: TableModel, record: TableRecord): boolean => {
    if (grant.kind !== "filter") return grant.kind === "all";
    try {
      return matches(settled(grant.filter, record, rules), record);
    } catch (cause) {
      rules.check();
      failed(model, grant.action, cause);
      return false;
    }
  };
  const answerAbout = (
    by: RecordRule,
    rules: RuleScope,
    { model, answer, record }: { model: TableModel; answer: unknown; record: TableRecord },
  ): boolean => allowsRecord(grantOf(model, by.action, answer), rules, model, record);

  /**
   * Calls a rule with a stand-in record to detect whether it reads the record; if so, it is called with each record. Neither a
   * context nor the declared parameters tell: a rule with a context may read the record or not, and a rule may read it without
   * declaring it. [TB80] [TB201]
   */
  const probed = (
    model: TableModel,
    by: RecordRule,
    { principal, rules }: Asker,
    { before, call: given }: { before: Grant | null; call: RuleCall | null },
  ): MaybePromise<Grant> => {
    // Once the rule reads the record, its answer is discarded, and its lookups matter only when they are recorded.
    const probe = createProbe<TableRecord>(rules.isWatched ? {} : null);
    const call = by.takesContext ? (given ?? rules.call()) : null;
    const grant = (answer: unknown): Grant => {
      rules.check();
      if (probe.isSeen) return { kind: "record", by };
      return grantOf(model, by.action, answer, { before, again: call?.hasLooked === true ? by : null });
    };
    const afterFailure = (cause: unknown): Grant => {
      if (!probe.isSeen) failed(model, by.action, cause);
      return grant(false);
    };
    try {
      // What is sent is known with the record.
      const sent = (): null => {
        if (by.action === "insert" || by.action === "update") probe.see();
        return null;
      };
      const args = argumentsOf(by, call, [authOf(principal), probe.standIn, probe.standIn], sent);
      const hasAsked = () => probe.isSeen;
      const answer = askRule(ruleName(model, by.action), () => callable(by)(...args), { hasAsked });
      if (!isPromise(answer)) return grant(answer);
      if (!probe.isSeen) return inTime(answer).then(grant, afterFailure);
      // The result for the stand-in is ignored.
      answer.catch(() => undefined);
      return grant(false);
    } catch (cause) {
      return afterFailure(cause);
    }
  };

  const answerOf = (
    by: RecordRule,
    { principal, rules }: Asker,
    record: TableRecord,
    deny: (cause: unknown) => false,
  ): MaybePromise<unknown> => {
    try {
      const call = by.takesContext ? rules.call() : null;
      const answer = callable(by)(...argumentsOf(by, call, [authOf(principal), record, record]));
      return isPromise(answer) ? inTime(awaiting("rules", answer)).catch(deny) : answer;
    } catch (cause) {
      return deny(cause);
    }
  };

  return { failed, inTime, grantOf, allowsRecord, answerAbout, probed, answerOf };
}

export function createRecordRights(deps: { clock: Clock; logger: Logger }): RecordRights {
  const { failed, inTime, grantOf, allowsRecord, answerAbout, probed, answerOf } = createAnswers(deps);

  /** Returns the rule's answer about this record inside a transaction. */
  const asked = (
    by: RecordRule,
    { principal, rules, decisions }: Asker & { decisions: Decisions },
    model: TableModel,
    { record, next: nextOf, sent, awaited }: RecordPair,
  ): Grant => {
    const call = by.takesContext ? rules.call() : null;
    const next = nextOf?.();
    const copyOf = (one: TableRecord) => (awaited === undefined ? plainCopy(one) : watched(plainCopy(one), awaited));
    const seen = (): readonly string[] | null => {
      awaited?.see();
      return sent?.() ?? null;
    };
    const args = argumentsOf(by, call, [authOf(principal), copyOf(record), copyOf(next ?? record)], seen);
    const about = by.takesContext && sent !== undefined ? [record, next, sent()] : [record, next];
    let answer: Grant = NONE;
    const name = ruleName(model, by.action);
    try {
      answer = grantOf(model, by.action, decisions.ask(callable(by), args, about, { call, name }));
    } catch (cause) {
      if (cause instanceof Suspended) throw cause;
      failed(model, by.action, cause);
    }
    rules.check();
    return answer;
  };

  const granted = (
    asker: Asker,
    model: TableModel,
    action: TableAction,
    { before, call }: { before: Grant | null; call: RuleCall | null },
  ): MaybePromise<Grant> => {
    const { principal } = asker;
    if (principal.kind === "server") return ALL;
    if (principal.kind === "serviceKey") {
      return principal.scopes.allows("db", model.namespace, model.name, action) ? ALL : NONE;
    }
    const rule = model.config.access?.[action];
    if (typeof rule !== "function") return rule === true ? ALL : NONE;
    const by = recordRule(action, rule);
    // A rule that declares the records as parameters, without the context after them, reads the record.
    if (rule.length > 1 && !by.takesContext) return { kind: "record", by };
    if (by.takesContext) return probed(model, by, asker, { before, call });
    const deny = (cause: unknown): false => {
      failed(model, action, cause);
      return false;
    };
    try {
      const answer = askRule(ruleName(model, action), () => (rule as PlainRule)(authOf(principal)));
      if (!isPromise(answer)) return grantOf(model, action, answer, { before });
      return inTime(answer)
        .catch(deny)
        .then((settled) => grantOf(model, action, settled, { before }));
    } catch (cause) {
      failed(model, action, cause);
      return NONE;
    }
  };

  return {
    grant(asker, model, action, { before = null, call = null } = {}) {
      return chain(granted(asker, model, action, { before, call }), (grant) => {
        if (grant.kind === "filter") watchRelations(grant.filter, asker.rules);
        return grant;
      });
    },

    covers(grant, asker, model, about) {
      const by = grant.kind === "record" ? grant.by : grant.again;
      const { record, awaited } = about;
      const present = by === null ? grant : asked(by, asker, model, about);
      return allowsRecord(present, asker.rules, model, awaited === undefined ? record : watched(record, awaited));
    },

    hides(read, asker, model, record) {
      if (read.kind === "record") return false;
      const present = read.again === null ? read : asked(read.again, asker, model, { record });
      return present.kind === "filter" && !allowsRecord(present, asker.rules, model, record);
    },

    coversRead(grant, { principal, rules }, model, record) {
      if (grant.kind !== "record") return allowsRecord(grant, rules, model, record);
      const { by } = grant;
      const deny = (cause: unknown): false => {
        failed(model, by.action, cause);
        return false;
      };
      return chain(answerOf(by, { principal, rules }, readOnly(record, model.jsonFields), deny), (answer) => {
        rules.check();
        return answerAbout(by, rules, { model, answer, record });
      });
    },
  };
}

const parseRuleFilter = (model: TableModel, filter: AnyFilter): ParsedFilter =>
  withOwnValues(
    parseFilter(model, filter, { name: "rule", conditionsMax: FILTER_CONDITIONS_MAX, takesRelations: true }),
  );
