import type { JsonValue } from "../../../../kernel/json/json.ts";
import type { SqlValue } from "../../../db/index.ts";
import { type AreaValues, areaValues } from "../filters/areas.ts";
import { type Condition, isListCondition, isRelation, mapConditions, type ParsedFilter } from "../filters/filter.ts";
import { scalar, slotCount } from "../filters/filter-sql.ts";
import {
  jsonNumber,
  jsonText,
  kindOf,
  lengthOf,
  NeedleSlots,
  needleOf,
  Slot,
  type ValueKind,
} from "../filters/slots.ts";
import { isAreaOperator, isIdsOperator, isTextOperator, OPERATORS } from "../model/operators.ts";

/**
 * Shape of a request, on which its statements depend, and the values, on which they do not. Requests of equal keys have the same
 * statements. The key has fields, operators, and of a value what its SQL depends on: its kind in a JSON field, the number of
 * values of `in` up to the next power of two, the length of a text that is searched for.
 */
export class Shape {
  key = "";
  /** Values in the order of the slots. */
  readonly values: SqlValue[] = [];

  /** Adds a part of the key as it is. */
  add(part: string): this {
    this.key += part;
    return this;
  }

  /** Adds the conditions of a filter, those inside of its groups too. */
  addFilter({ all, groups }: ParsedFilter): this {
    for (const condition of all) this.#addCondition(condition);
    this.key += "\n";
    // Unambiguous, as no condition begins with a parenthesis.
    for (const group of groups) {
      this.key += `(${group.kind}`;
      if (group.kind === "join") this.key += ` ${group.field.column.sql} ${group.operator} ${group.outer.column.sql}`;
      if (isRelation(group)) this.key += ` ${group.model.sql}${group.isRequested ? " requested" : ""}`;
      for (const filter of group.filters) this.addFilter(filter);
      if (isRelation(group) && group.readable !== null) this.add("readable").addFilter(group.readable);
      this.key += ")";
    }
    return this;
  }

  /** Adds values of columns of which the SQL depends only on whether they are null, as those of a cursor. */
  addScalars(values: readonly SqlValue[]): this {
    for (const value of values) this.#addScalar(value);
    return this;
  }

  /** Adds the values of an area of which nothing but values differs. */
  addArea(area: AreaValues): this {
    this.values.push(...area.all);
    return this;
  }

  #addScalar(value: SqlValue): void {
    this.key += value === null ? " null" : " ?";
    if (value !== null) this.values.push(value);
  }

  #addCondition(condition: Condition): void {
    const { field, operator, value } = condition;
    // Unambiguous: neither a quoted name nor a path has a line break, and a path ends with its last quote.
    this.key += `\n${field.column.sql}${field.isJson ? field.jsonPath : ""} ${operator}`;
    if (isListCondition(condition)) {
      if (field.isJson) this.#addJsonList(condition.value);
      else this.#addList(condition.value);
    } else if (isIdsOperator(operator)) {
      const ids = value as readonly JsonValue[];
      this.add(` ${slotsOf(ids)}`).#addScalar(JSON.stringify(ids));
    } else if (isTextOperator(operator)) {
      const { by, values } = needleOf(operator, value);
      this.key += ` ${by} ${values.length} ${by === "anywhere" ? lengthOf(value) : ""}`;
      this.values.push(...values);
    } else if (isAreaOperator(operator)) this.addArea(areaValues(value));
    else if (OPERATORS[operator].takes === "part") this.#addTyped(value as JsonValue, lengthOf(value));
    else if (field.isJson) this.#addTyped(value as JsonValue, 0);
    else this.#addScalar(scalar(value as JsonValue));
  }

  #addTyped(value: JsonValue, length: number): void {
    const kind = kindOf(value);
    this.key += kind === "boolean" ? ` ${value}` : ` ${kind} ${length}`;
    if (!isWritten(kind)) this.values.push(boundValue(value, kind));
  }

  #addList(list: readonly JsonValue[]): void {
    const present = list.filter((value) => value !== null).map(scalar);
    this.key += ` ${slotsOf(present)}${present.length < list.length ? " null" : ""}`;
    this.#addPadded(present);
  }

  #addJsonList(list: readonly JsonValue[]): void {
    for (const kind of LISTED_KINDS) {
      const own = list.filter((value) => kindOf(value) === kind).map((value) => boundValue(value, kind));
      this.key += ` ${slotsOf(own)}`;
      this.#addPadded(own);
    }
    for (const constant of CONSTANTS) if (list.includes(constant)) this.key += ` ${constant}`;
  }

  /** Adds values, padded with the last one, which changes no list. */
  #addPadded(values: readonly SqlValue[]): void {
    for (let place = 0; place < slotsOf(values); place++)
      this.values.push(values[Math.min(place, values.length - 1)] ?? null);
  }
}

const LISTED_KINDS = ["text", "number", "json"] as const;
/** Values that are part of the SQL for JSON fields. */
const CONSTANTS = [null, true, false] as const;
const isWritten = (kind: ValueKind): boolean => kind === "null" || kind === "boolean";

const boundValue = (value: JsonValue, kind: ValueKind): SqlValue =>
  kind === "json" ? jsonText(value) : jsonNumber(scalar(value));

const slotsOf = (values: readonly unknown[]): number => (values.length === 0 ? 0 : slotCount(values.length));

/** Makes conditions and values with slots, in the order in which a `Shape` received them. */
export class Template {
  #count = 0;

  filter(filter: ParsedFilter): ParsedFilter {
    return mapConditions(filter, (condition) => this.#condition(condition));
  }

  scalars(values: readonly SqlValue[]): SqlValue[] {
    return values.map((value) => (value === null ? null : (this.#slot("text") as unknown as SqlValue)));
  }

  area(area: AreaValues): AreaValues {
    return area.with(this.#slots("number", area.all.length) as unknown as SqlValue[]);
  }

  #slot(kind: ValueKind, length = 0): Slot {
    return new Slot(this.#count++, kind, length);
  }

  #slots(kind: ValueKind, length: number): Slot[] {
    return Array.from({ length }, () => this.#slot(kind));
  }

  #condition(condition: Condition): Condition {
    const { field, operator, value } = condition;
    // The slot in place of a value is only passed on, as the value would be.
    const having = (slot: unknown) => ({ field, operator, value: slot }) as Condition;
    if (isListCondition(condition)) {
      return having(field.isJson ? this.#jsonList(condition.value) : this.#list(condition.value));
    }
    if (isTextOperator(operator)) {
      const { by, values } = needleOf(operator, value);
      return having(new NeedleSlots(by, this.#slots("text", values.length) as unknown as SqlValue[], lengthOf(value)));
    }
    if (isAreaOperator(operator)) {
      return having(this.area(areaValues(value)));
    }
    if (isIdsOperator(operator)) return having(this.#slot("json", slotsOf(value as readonly JsonValue[])));
    const kind = kindOf(value as JsonValue);
    if (kind === "null" || (field.isJson && isWritten(kind))) return condition;
    return having(this.#slot(kind, lengthOf(value)));
  }

  #list(list: readonly JsonValue[]): unknown[] {
    const present = list.filter((value) => value !== null);
    const slots = this.#slots("text", slotsOf(present));
    return present.length < list.length ? [...slots, null] : slots;
  }

  #jsonList(list: readonly JsonValue[]): unknown[] {
    const slots = LISTED_KINDS.flatMap((kind) =>
      this.#slots(kind, slotsOf(list.filter((value) => kindOf(value) === kind))),
    );
    return [...slots, ...CONSTANTS.filter((constant) => list.includes(constant))];
  }
}
