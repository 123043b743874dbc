import type { MatchFilter, MatchGroup } from "../../../../kernel/records/filter-match.ts";
import { valueAt } from "../../../../kernel/records/value-path.ts";
import type { TableRecord } from "../../../config/types.ts";
import {
  type Condition,
  type Group,
  isRelation,
  type ParsedFilter,
  plain,
  type Relation,
  relationsIn,
} from "../filters/filter.ts";
import type { RuleScope } from "../lookups/calls.ts";

// Relations of a rule's filter, for one record or for a standing right. Lists have them in their SQL.

const TRUE: MatchGroup = { kind: "not", filters: [] };
const FALSE: MatchGroup = { kind: "or", filters: [] };

/** Returns the filter for this record: its relations are looked up, and replaced by what was found. */
export function settled(filter: ParsedFilter, record: TableRecord, rules: RuleScope): MatchFilter {
  if (relationsIn(filter).next().done) return plain(filter);
  const settle = (one: ParsedFilter): MatchFilter => ({
    all: one.all,
    groups: one.groups.map((group: Group): MatchGroup => {
      if (!isRelation(group)) return { kind: group.kind, filters: group.filters.map(settle) };
      const related = relatedTo(group, record);
      const isFound = related !== null && rules.some(group.model.name, related);
      return isFound === (group.kind === "some") ? TRUE : FALSE;
    }),
  });
  return settle(filter);
}

/** Returns what a related record of this one matches; null where none can, because a compared value is null. */
function relatedTo({ filters: [filter], joins }: Relation, record: TableRecord): ParsedFilter | null {
  const all: Condition[] = [...filter.all];
  for (const { field, operator, outer } of joins) {
    const value = valueAt(record, outer) ?? null;
    // Null equals nothing, is ordered before nothing, and differs from everything.
    if (value !== null) all.push({ field, operator, value });
    else if (operator !== "!=") return null;
  }
  return { all, groups: filter.groups };
}

/**
 * Reports what a right with this filter depends on: of each related table the records that meet the conditions without a field of
 * the outer record, as far as these are equalities; else all its records.
 */
export function watchRelations(filter: ParsedFilter, rules: RuleScope): void {
  for (const { model, filters } of relationsIn(filter)) {
    const equal = filters[0].all.filter(({ field, operator }) => operator === "==" && !field.isJson);
    const byField = new Map(equal.map(({ field, value }) => [field.name, value]));
    rules.lookedAt({ table: model.name, fields: [...byField.keys()], values: [...byField.values()] as never });
  }
}
