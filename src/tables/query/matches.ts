import type { TableModel } from "../model/model.ts";
import type { Grant } from "../rules/access.ts";
import { type Condition, NO_FILTER, type ParsedFilter } from "./filter.ts";
import { behindRule, filterToSql, join, type SqlCondition } from "./filter-sql.ts";
import { coveringIndex, enteredWalk, enteringConditions } from "./index-choice.ts";
import type { ListRequest } from "./list-query.ts";
import type { Matches } from "./list-sql.ts";
import type { FilteredPath } from "./pages/filtered-walk.ts";
import { isHeavy, scanCost } from "./read-cost.ts";

/**
 * The matches of a request and the rule's filter. Where an index has them next to each other, or with `isWalk`, no other
 * record is examined; elsewhere the rule is evaluated first.
 */
export function matchesOf(
  model: TableModel,
  filter: ParsedFilter,
  grant: Grant,
  { isWalk }: { isWalk: boolean } = { isWalk: false },
): Matches {
  const alias = `${model.sql}.`;
  const rule = grant.kind === "filter" ? grant.filter : null;
  const conditions = conditionsOf(filter, grant);
  const index = conditions === null || conditions.some(isHeavy) ? null : coveringIndex(model, conditions);
  const isGuarded = rule !== null && !isWalk && index?.by !== "range";
  const where = isGuarded ? guarded(model, filter, rule) : both(filter, rule, alias);
  const all = [filter, rule ?? NO_FILTER].flatMap((one) => [...one.all, ...one.any]);
  return { where, index: index?.name ?? null, cost: scanCost(all, where?.params ?? []), rule };
}

function both(filter: ParsedFilter, rule: ParsedFilter | null, alias: string): SqlCondition | null {
  const parts = [filterToSql(filter, alias), rule === null ? null : filterToSql(rule, alias)];
  const present = parts.filter((part) => part !== null);
  return present.length === 0 ? null : join(present, "AND");
}

/** The rule first; next to it only conditions by which SQLite may enter an index. */
function guarded(model: TableModel, filter: ParsedFilter, rule: ParsedFilter): SqlCondition | null {
  const alias = `${model.sql}.`;
  const [entering, others] = split(filter, enteringConditions(model, filter.all));
  const behind = behindRule(rule, filterToSql(others, alias), alias);
  const parts = [behind, filterToSql(entering, alias, { equality: "IS" })].filter((part) => part !== null);
  return parts.length === 0 ? null : join(parts, "AND");
}

const split = (filter: ParsedFilter, entering: ReadonlySet<Condition>): [ParsedFilter, ParsedFilter] => [
  { all: filter.all.filter((condition) => entering.has(condition)), any: [] },
  { all: filter.all.filter((condition) => !entering.has(condition)), any: filter.any },
];

/** The conditions that must all match; null where there are alternatives too. */
export function conditionsOf(filter: ParsedFilter, grant: Grant): readonly Condition[] | null {
  if (filter.any.length > 0) return null;
  return grant.kind === "filter" ? [...filter.all, ...grant.filter.all] : filter.all;
}

/** null: no index has the order, a condition may take long for one record, or there is none. */
export function filteredPath(
  model: TableModel,
  { filter, sort }: Pick<ListRequest, "filter" | "sort">,
  grant: Grant,
  matches: Matches,
): FilteredPath | null {
  const rule = grant.kind === "filter" ? grant.filter : null;
  const all = [filter, rule ?? NO_FILTER].flatMap((one) => [...one.all, ...one.any]);
  const where = rule === null ? matches.where : guarded(model, filter, rule);
  if (where === null || all.some(isHeavy)) return null;
  // With a rule, the caller's conditions enter an index only where they may. [TB110]
  const own = rule === null ? filter.all : filter.all.filter((one) => enteringConditions(model, filter.all).has(one));
  const hasNoChoice = filter.any.length === 0 && (rule === null || rule.any.length === 0);
  const path = enteredWalk(model, [...own, ...(rule?.all ?? [])], sort);
  if (path === null) return null;
  const entering = filterToSql({ all: [...path.entering], any: [] }, `${model.sql}.`);
  return { walk: path.walk, entering, where, isExact: path.entering.length === all.length && hasNoChoice };
}
