import type { SqlValue } from "../../db/index.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import type { Condition, ParsedFilter } from "./filter.ts";
import { type SqlCondition, scalar, slotCount } from "./filter-sql.ts";
import type { PreparedList } from "./list-sql.ts";

/** Operators whose SQL depends on their value only by its being null, or by the length of its list. */
const OPERATORS: readonly string[] = ["==", "!=", "<", "<=", ">", ">=", "in", "not in"];

/** The place of a rule's value among the parameters of a statement. An object, so that no value of a request equals it. */
class Slot {
  readonly place: number;

  constructor(place: number) {
    this.place = place;
  }
}

/** What the statements of a list depend on in a rule's filter, without its values. */
export interface RuleShape {
  key: string;
  /** In the order of the slots. */
  values: readonly SqlValue[];
  /** A filter of the same shape, with slots as its values. */
  template(): ParsedFilter;
}

const isList = (condition: Condition): condition is Condition & { operator: "in" | "not in" } =>
  condition.operator === "in" || condition.operator === "not in";

/** null: its statements depend on its values. */
export function ruleShape({ all, any }: ParsedFilter): RuleShape | null {
  if (any.length > 0) return null;
  let key = "";
  const values: SqlValue[] = [];
  for (const condition of all) {
    const { field, operator, value } = condition;
    if (field.isJson || !OPERATORS.includes(operator)) return null;
    key += `${field.name} ${operator}`;
    if (!isList(condition)) {
      key += value === null ? " null\n" : "\n";
      if (value !== null) values.push(scalar(condition.value as JsonValue));
      continue;
    }
    const present = condition.value.filter((one) => one !== null);
    const slots = present.length === 0 ? 0 : slotCount(present.length);
    key += ` ${slots}${present.length < condition.value.length ? " null" : ""}\n`;
    // Padded by its last value.
    for (let place = 0; place < slots; place++)
      values.push(scalar(present[Math.min(place, present.length - 1)] ?? null));
  }
  return { key, values, template: () => ({ all: templates(all), any: [] }) };
}

function templates(conditions: readonly Condition[]): Condition[] {
  let place = 0;
  // As a value of a condition it is only ever passed on.
  const slot = (): JsonValue => new Slot(place++) as unknown as JsonValue;
  return conditions.map((condition) => {
    if (!isList(condition))
      return condition.value === null ? condition : ({ ...condition, value: slot() } as Condition);
    const present = condition.value.filter((value) => value !== null);
    const slots = Array.from({ length: present.length === 0 ? 0 : slotCount(present.length) }, slot);
    return { ...condition, value: present.length < condition.value.length ? [...slots, null] : slots };
  });
}

/** The statements of a template with the values of a rule's filter of its shape. */
export function withValues(list: PreparedList, values: readonly SqlValue[]): PreparedList {
  const bind = (param: unknown): SqlValue =>
    param instanceof Slot ? (values[param.place] ?? null) : (param as SqlValue);
  const bound = <T extends SqlCondition | null>(condition: T): T =>
    condition === null ? condition : { ...condition, params: condition.params.map(bind) };
  const { page, total, ofFew, walk, filtered } = list;
  const steps = walk?.steps ?? null;
  return {
    ...list,
    page: bound(page),
    total: total === null ? null : { sql: bound(total.sql) },
    ofFew: ofFew === null ? null : { count: bound(ofFew.count), bytes: bound(ofFew.bytes), page: bound(ofFew.page) },
    filtered:
      filtered === null
        ? null
        : {
            ...filtered,
            ranges: filtered.ranges.map((range) => ({
              page: bound(range.page),
              group: bound(range.group),
              rest: bound(range.rest),
            })),
          },
    walk: walk === null || steps === null ? walk : { steps: { count: bound(steps.count), bytes: bound(steps.bytes) } },
  };
}
