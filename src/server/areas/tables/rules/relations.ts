import type { MatchFilter, MatchGroup } from "../../../../kernel/records/filter-match.ts";
import { valueAt } from "../../../../kernel/records/value-path.ts";
import type { TableRecord } from "../../../config/types.ts";
import {
  type Condition,
  type Group,
  hasRelations,
  isRelation,
  type ParsedFilter,
  plain,
  type Relation,
} from "../filters/filter.ts";
import type { RuleScope } from "../lookups/calls.ts";
import { relatedPlaces } from "../lookups/plan.ts";

// Relations of a filter, for one record or for a standing right. Lists have them in their SQL.

const TRUE: MatchGroup = { kind: "not", filters: [] };
const FALSE: MatchGroup = { kind: "or", filters: [] };

/** Returns the filter for this record: its relations are looked up, and replaced by what was found. */
export const settled = (filter: ParsedFilter, record: TableRecord, rules: Pick<RuleScope, "some">): MatchFilter =>
  settledBy(filter, record, ({ model, filters: [related] }) => rules.some(model.name, related));

/**
 * Returns the filter for this record, with what `isFound` answers in place of its relations: whether there is such a record. In these,
 * the values of this record stand in place of its fields.
 */
export function settledBy(
  filter: ParsedFilter,
  record: TableRecord,
  isFound: (relation: Relation) => boolean,
): MatchFilter {
  if (!hasRelations(filter)) return plain(filter);
  const settle = (one: ParsedFilter): MatchFilter => ({
    all: one.all,
    groups: one.groups.map((group: Group): MatchGroup => {
      // A join stands in a relation.
      if (group.kind === "join") return FALSE;
      if (!isRelation(group)) return { kind: group.kind, filters: group.filters.map(settle) };
      const related = relatedTo(group.filters[0], record);
      const some = related !== null && isFound({ ...group, filters: [related] });
      return some === (group.kind === "some") ? TRUE : FALSE;
    }),
  });
  return settle(filter);
}

/** Returns what a related record of this one matches; null where none can, because a compared value is null. */
function relatedTo(filter: ParsedFilter, record: TableRecord): ParsedFilter | null {
  const all: Condition[] = [...filter.all];
  const groups: Group[] = [];
  for (const group of filter.groups) {
    if (group.kind === "join") {
      const { field, operator, outer } = group;
      const value = valueAt(record, outer) ?? null;
      // Null equals nothing, is ordered before nothing, and differs from everything.
      if (value !== null) all.push({ field, operator, value });
      else if (operator !== "!=") return null;
      // The fields of a relation in this one are those of the related record.
    } else if (isRelation(group)) groups.push(group);
    else {
      const filters = group.filters.map((one) => relatedTo(one, record) ?? NOTHING);
      groups.push({ kind: group.kind, filters });
    }
  }
  return { all, groups };
}

const NOTHING: ParsedFilter = { all: [], groups: [{ kind: "or", filters: [] }] };

/** Reports what a right with this filter depends on. Rights of one request depend on nothing that changes. */
export function watchRelations(filter: ParsedFilter, rules: Pick<RuleScope, "isWatched" | "lookedAt">): void {
  if (!rules.isWatched) return;
  for (const place of relatedPlaces(filter)) rules.lookedAt(place);
}
