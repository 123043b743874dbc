import { type Condition, isRelation, type ParsedFilter, type Relation } from "./filter.ts";

/** Returns the conditions on the filter's own records: those of its groups, and none of its relations. */
export function* ownConditionsIn({ all, groups }: ParsedFilter): Generator<Condition> {
  yield* all;
  for (const group of groups)
    if (!isRelation(group)) for (const filter of group.filters) yield* ownConditionsIn(filter);
}

/** Returns the relations that stand in the filter or its groups, and in no other relation. */
export function* ownRelationsIn({ groups }: ParsedFilter): Generator<Relation> {
  for (const group of groups) {
    if (isRelation(group)) yield group;
    else for (const filter of group.filters) yield* ownRelationsIn(filter);
  }
}
