import type { Clock } from "../../../../kernel/clock.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import type { MaybePromise } from "../../../../kernel/maybe-promise.ts";
import { DeadlineError } from "../../../../kernel/time/deadline.ts";
import { mayTakeMoreThan } from "../../../access/probe.ts";
import type { Auth, Rule, RuleContext, TableRecord, UpdateRule } from "../../../config/types.ts";
import { SLOW_RULE_LOGGED_EVERY_MS } from "../limits.ts";
import type { RuleCall } from "../lookups/calls.ts";
import type { TableModel } from "../model/model.ts";

export type TableAction = "read" | "insert" | "update" | "delete";
type RuleFunction = Exclude<Rule, boolean>;
type UpdateRuleFunction = Exclude<UpdateRule, boolean>;

/** A rule that is called with a record. */
export type RecordRule = { takesContext: boolean } & (
  | { action: "read" | "insert" | "delete"; rule: RuleFunction }
  | { action: "update"; rule: UpdateRuleFunction }
);

const recordRules = new WeakMap<RuleFunction | UpdateRuleFunction, Map<TableAction, RecordRule>>();

/** Describes a rule, memoised per function: whether it may take the context, which its text says when its `length` does not. */
export function recordRule(action: TableAction, rule: RuleFunction | UpdateRuleFunction): RecordRule {
  const known = recordRules.get(rule)?.get(action);
  if (known !== undefined) return known;
  const contextAt = action === "update" ? UPDATE_PARAMETERS : RECORD_PARAMETERS;
  const takesContext = mayTakeMoreThan(rule, contextAt - 1);
  // The rule of this action has this type.
  const by = { action, rule, takesContext } as RecordRule;
  const rules = recordRules.get(rule) ?? new Map<TableAction, RecordRule>();
  recordRules.set(rule, rules.set(action, by));
  return by;
}

/** Number of parameters of a rule with its context. */
const RECORD_PARAMETERS = 3;
const UPDATE_PARAMETERS = 4;

/**
 * Returns a function that logs failed rules, which deny. Timeouts are throttled to one entry per table and
 * SLOW_RULE_LOGGED_EVERY_MS, because a list calls its rule once per record.
 */
export function createFailureLog({ clock, logger }: { clock: Clock; logger: Logger }) {
  const slowLoggedAt = new WeakMap<TableModel, number>();
  return (model: TableModel, rule: TableAction, cause: unknown): void => {
    const table = `${model.namespace}.${model.name}`;
    if (!(cause instanceof DeadlineError)) {
      logger.error("an access rule threw", { table, rule, cause });
      return;
    }
    const loggedAt = slowLoggedAt.get(model);
    if (loggedAt !== undefined && clock.now() - loggedAt < SLOW_RULE_LOGGED_EVERY_MS) return;
    slowLoggedAt.set(model, clock.now());
    logger.error("an access rule did not settle in time and denies", { table, rule, cause });
  };
}

/** Parameters of a rule in order; the context is the last one. */
type Arguments = [auth: Auth | null, record: TableRecord, ...rest: unknown[]];

/** `sent`: returns what the context has as such. */
export function argumentsOf(
  { action, takesContext }: RecordRule,
  call: RuleCall | null,
  about: Arguments,
  sent: () => readonly string[] | null = NOTHING_SENT,
): Arguments {
  const [auth, record, next] = about;
  const context = takesContext && call !== null ? [withSent(call.context, sent)] : [];
  return action === "update" ? [auth, record, next, ...context] : [auth, record, ...context];
}

const NOTHING_SENT = (): null => null;

const withSent = ({ namespace, instanceId, table, db }: RuleContext, sent: () => readonly string[] | null) => ({
  namespace,
  instanceId,
  table,
  db,
  get sent() {
    return sent();
  },
});

/** Returns the rule as a function of its arguments, which `argumentsOf` has put in order. */
export const callable = ({ rule }: RecordRule) => rule as unknown as (...args: Arguments) => MaybePromise<unknown>;
