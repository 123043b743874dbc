import { candidatesOf as candidatesInArea } from "../filters/areas.ts";
import {
  type Condition,
  conditionsIn,
  isAreaCondition,
  isLinked,
  NO_FILTER,
  type ParsedFilter,
} from "../filters/filter.ts";
import { behindRule, type Form, filterToSql, join, type SqlCondition } from "../filters/filter-sql.ts";
import { hasHeavyRelation, isHeavy, type ReadCost, relatedCost, scanCost } from "../filters/read-cost.ts";
import type { TableModel } from "../model/model.ts";
import type { Grant } from "../rules/access.ts";
import { type CoveringIndex, coveringIndex, enteringConditions, fixedPart, indexedBy, walkOf } from "./index-choice.ts";
import type { ListRequest } from "./list-query.ts";

/** Matches of a request. The condition is null for all records. */
export interface Matches {
  where: SqlCondition | null;
  /** The condition without entering an R-tree. */
  tested: SqlCondition | null;
  /** Index that finds the matches without examining other records; null when there is none. */
  index: CoveringIndex | null;
  /** Few records among which the matches are; null: see `index`, or no index finds any, or a condition may take long for one record. */
  candidates: Candidates | null;
  /** Cost of testing each record. */
  cost: ReadCost;
  /** Part of the condition that comes from the read rule. */
  rule: ParsedFilter | null;
}

/** Records that an R-tree, or an index by a part of the conditions, finds. */
export interface Candidates {
  /** SELECT of their row ids, as "id". */
  rows: SqlCondition;
  /** Condition of the matches, which finds them among the candidates. */
  where: SqlCondition;
  by: "area" | "part";
}

/**
 * Returns the matches of a request and the rule's filter. When an index has them next to each other, or with `isWalk`, no other
 * record is examined; otherwise the rule is evaluated first.
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
  const index =
    conditions === null || conditions.some((one) => isLinked(one) || isHeavy(one))
      ? null
      : coveringIndex(model, conditions);
  const isGuarded = rule !== null && !isWalk && index?.by !== "range";
  const tested = isGuarded ? guarded(model, filter, rule, "enter") : both(filter, rule, alias);
  const area = isWalk ? null : areaCandidates(filter, rule);
  const where = tested === null || area === null ? tested : among(model, area, tested);
  const all = [...conditionsIn(filter), ...conditionsIn(rule ?? NO_FILTER)];
  const cost = relatedCost(relatedCost(scanCost(all, where?.params ?? []), filter), rule ?? NO_FILTER);
  const candidates =
    isWalk || index !== null || all.some(isHeavy) ? null : candidatesOf(model, tested, area, rule ?? filter);
  return { where, tested, index, candidates, cost, rule };
}

/**
 * Returns the candidates; null: nothing finds few. `visible`: the filter of the rule, or of the request where there is no rule: the
 * number of candidates, which decides where the list is read, must not tell of hidden records. [TB110]
 */
function candidatesOf(
  model: TableModel,
  tested: SqlCondition | null,
  area: SqlCondition | null,
  visible: ParsedFilter,
): Candidates | null {
  if (tested === null) return null;
  const rows = area ?? partOf(model, visible);
  return rows === null ? null : { rows, where: among(model, rows, tested), by: area === null ? "part" : "area" };
}

/** Returns the row ids that an index finds by the conditions that fix its leading columns; null where no index has such columns. */
function partOf(model: TableModel, { all }: ParsedFilter): SqlCondition | null {
  const part = fixedPart(model, all);
  if (part === null) return null;
  const condition = filterToSql({ ...NO_FILTER, all: part.conditions }, `${model.sql}.`);
  if (condition === null) return null;
  const { sql, params } = condition;
  return { sql: `SELECT rowid AS "id" FROM ${indexedBy(model, part.index)} WHERE ${sql}`, params };
}

/** Returns the candidates of the first condition with an area that every match meets: an R-tree is entered for one. */
function areaCandidates(filter: ParsedFilter, rule: ParsedFilter | null): SqlCondition | null {
  const area = [...filter.all, ...(rule?.all ?? [])].find(isAreaCondition);
  return area === undefined ? null : candidatesInArea(area.field.column, area.value);
}

const among = ({ sql }: TableModel, candidates: SqlCondition, tested: SqlCondition): SqlCondition =>
  join([{ sql: `${sql}.rowid IN (${candidates.sql})`, params: candidates.params }, tested], "AND");

function both(filter: ParsedFilter, rule: ParsedFilter | null, alias: string): SqlCondition | null {
  const form: Form = { equality: "=", links: "enter" };
  const parts = [filterToSql(filter, alias, form), rule === null ? null : filterToSql(rule, alias, form)];
  const present = parts.filter((part) => part !== null);
  return present.length === 0 ? null : join(present, "AND");
}

/** Returns the condition with the rule first; only conditions by which SQLite may enter an index are next to it. */
function guarded(
  model: TableModel,
  filter: ParsedFilter,
  rule: ParsedFilter,
  links: Form["links"],
): SqlCondition | null {
  const alias = `${model.sql}.`;
  const [entering, others] = split(filter, enteringConditions(model, filter.all));
  const behind = behindRule(rule, filterToSql(others, alias), alias, links);
  const parts = [behind, filterToSql(entering, alias, { equality: "IS", links })].filter((part) => part !== null);
  return parts.length === 0 ? null : join(parts, "AND");
}

const split = (filter: ParsedFilter, entering: ReadonlySet<Condition>): [ParsedFilter, ParsedFilter] => [
  { ...NO_FILTER, all: filter.all.filter((condition) => entering.has(condition)) },
  { ...filter, all: filter.all.filter((condition) => !entering.has(condition)) },
];

/** Returns the conditions that must all match; null when there are groups too. */
function conditionsOf(filter: ParsedFilter, grant: Grant): readonly Condition[] | null {
  const rule = grant.kind === "filter" ? grant.filter : NO_FILTER;
  return filter.groups.length + rule.groups.length > 0 ? null : [...filter.all, ...rule.all];
}

/** Whether a condition of the request or of its rule may take long for one record. */
export function mayTakeLong(filter: ParsedFilter, grant: Grant): boolean {
  const rule = grant.kind === "filter" ? grant.filter : NO_FILTER;
  const isLong = (one: ParsedFilter) => [...conditionsIn(one)].some(isHeavy) || hasHeavyRelation(one);
  return isLong(filter) || isLong(rule);
}

/** A walk along an index in the order of a list. */
export interface Path {
  index: string;
  /** Conditions by which the index is entered; null for none. */
  entering: SqlCondition | null;
  /** Conditions tested on each record along the index, the rule's first; null when it has exactly the matches. */
  tested: SqlCondition | null;
}

/** Returns the path of a list; null when no index has the order, or a condition may take long for one record. */
export function pathOf(
  model: TableModel,
  { filter, sort }: Pick<ListRequest, "filter" | "sort">,
  grant: Grant,
): Path | null {
  const rule = grant.kind === "filter" ? grant.filter : NO_FILTER;
  if (mayTakeLong(filter, grant)) return null;
  const all = [...conditionsIn(filter), ...conditionsIn(rule)];
  const alias = `${model.sql}.`;
  const enteredBy = (entering: readonly Condition[]) => filterToSql({ ...NO_FILTER, all: entering }, alias);
  const conditions = conditionsOf(filter, grant);
  const exact = conditions === null ? null : walkOf(model, conditions, sort);
  if (exact !== null && exact.entering.length === all.length) {
    return { index: exact.index, entering: enteredBy(exact.entering), tested: null };
  }
  // With a rule, the caller's conditions enter an index only if they are allowed to. [TB110]
  const allowed = grant.kind === "filter" ? enteringConditions(model, filter.all) : null;
  const own = allowed === null ? filter.all : filter.all.filter((one) => allowed.has(one));
  const walk = walkOf(model, [...own, ...rule.all], sort);
  if (walk === null) return null;
  const others = { ...filter, all: filter.all.filter((one) => !walk.entering.includes(one)) };
  const tested = grant.kind === "filter" ? guarded(model, filter, grant.filter, "test") : filterToSql(others, alias);
  return { index: walk.index, entering: enteredBy(walk.entering), tested };
}
