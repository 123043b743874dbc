import { isRelation, NO_FILTER, type ParsedFilter, type Relation } from "../filters/filter.ts";
import { filterToSql, type SqlCondition } from "../filters/filter-sql.ts";
import type { TableModel } from "../model/model.ts";
import { coveringIndex } from "./index-choice.ts";

/** Alias of the asked table. No table has this name: names do not begin with `_platform`. */
const ASKED = "_platform_asked";

/**
 * Returns a condition that all matches of a rule's filter meet, whose own matches an index has next to each other, or in one place
 * for each value: the conditions of the filter, or those of a relation in it, such as the teams of a member. null: there is none.
 */
export function boundedPart(model: TableModel, { all, groups }: ParsedFilter): SqlCondition | null {
  if (isBounded(model, all)) return filterToSql({ ...NO_FILTER, all }, `${model.sql}.`);
  for (const group of groups) {
    const part = isRelation(group) && group.kind === "some" ? relatedPart(model, group) : null;
    if (part !== null) return part;
  }
  return null;
}

function isBounded(model: TableModel, all: ParsedFilter["all"]): boolean {
  const [only] = all;
  const isList = all.length === 1 && only?.operator === "in" && !only.field.isJson;
  return (isList && isIndexed(model, only.field.name)) || (all.length > 0 && coveringIndex(model, all) !== null);
}

/** Returns the values that the relation's own conditions find for the field with which it is joined, where indexes have both. */
function relatedPart(model: TableModel, { model: asked, filters: [{ all, groups }] }: Relation): SqlCondition | null {
  const joins = groups.filter((one) => one.kind === "join");
  const entered = joins.find(({ operator, outer }) => operator === "==" && isIndexed(model, outer.name));
  const isFound = all.some(
    ({ field, operator }) => !field.isJson && (operator === "==" || operator === "in") && isIndexed(asked, field.name),
  );
  const where = isFound ? filterToSql({ ...NO_FILTER, all }, `${ASKED}.`) : null;
  if (entered === undefined || where === null) return null;
  const values = `SELECT ${ASKED}.${entered.field.column.sql} FROM ${asked.sql} AS ${ASKED} WHERE ${where.sql}`;
  return { sql: `${model.sql}.${entered.outer.column.sql} IN (${values})`, params: where.params };
}

const isIndexed = ({ indexes }: TableModel, field: string): boolean =>
  indexes.some(({ columns }) => columns[0] === field);
