import { badField } from "../../../../kernel/errors.ts";
import { illFormed } from "../../../../kernel/fields.ts";
import { jsonCopy } from "../../../../kernel/json/copy.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../../../kernel/json/json.ts";
import type { MatchFilter } from "../../../../kernel/records/filter-match.ts";
import type { GeoBox, GeoCircle } from "../../../../kernel/records/geo.ts";
import { instantOf, isIsoDate } from "../../../../kernel/time/iso-datetime.ts";
import type { FilterOperator } from "../../../config/types.ts";
import { primaryKeyIndexName } from "../../../db/index.ts";
import {
  FILTER_CONDITIONS_MAX,
  FILTER_LEVELS_MAX,
  IN_VALUES_MAX,
  NEEDLE_LENGTH_MAX,
  SHOWN_LENGTH_MAX,
} from "../limits.ts";
import { type FieldPath, resolveField } from "../model/field-path.ts";
import type { TableModel } from "../model/model.ts";
import {
  type AreaOperator,
  type IdsOperator,
  isAreaOperator,
  isFilterOperator,
  isIdsOperator,
  isListOperator,
  type ListOperator,
  OPERATOR_NAMES,
  OPERATORS,
} from "../model/operators.ts";
import { areaIn } from "./areas.ts";
import { idsOf, refuseOthers } from "./linked.ts";

interface ListCondition {
  field: FieldPath;
  operator: ListOperator;
  value: readonly JsonValue[];
}

interface AreaCondition {
  field: FieldPath;
  operator: AreaOperator;
  value: GeoCircle | GeoBox;
}

/** A condition on several references, with an id, or a list of ids of which none is there twice. */
type LinkedCondition =
  | { field: FieldPath; operator: "has"; value: JsonValue }
  | { field: FieldPath; operator: IdsOperator; value: readonly JsonValue[] };

/** A condition validated against its table. */
export type Condition =
  | {
      field: FieldPath;
      operator: Exclude<FilterOperator, ListOperator | AreaOperator | LinkedCondition["operator"]>;
      value: JsonValue;
    }
  | AreaCondition
  | ListCondition
  | LinkedCondition;

/** Whether the condition asks for ids of several references, which have an index of their own. */
export const isLinked = (condition: Condition): condition is LinkedCondition => condition.field.column.links !== null;

export const isListCondition = (condition: Condition): condition is ListCondition => isListOperator(condition.operator);

export const isAreaCondition = (condition: Condition): condition is AreaCondition => isAreaOperator(condition.operator);

/** Validated filter: all of `all` and of `groups` must match. */
export interface ParsedFilter {
  all: readonly Condition[];
  groups: readonly Group[];
}

/** `or`: one of the filters must match. `not`: none of them, of which there is one. */
export type Group = { kind: "or" | "not"; filters: readonly ParsedFilter[] } | Relation | Join;

/**
 * `some`: a record of the other table matches its one filter. `none`: no record does. `index` finds the records of the other table
 * that may match.
 */
export interface Relation {
  kind: "some" | "none";
  filters: readonly [ParsedFilter];
  model: TableModel;
  index: string;
  /** The read rule's filter that related records must match first; null in a rule's own relation, and where the caller may read all. */
  readable: ParsedFilter | null;
  /** Whether a request asks it, and not a rule. */
  isRequested: boolean;
}

/**
 * A comparison of a field of the related record with one of the record in which the relation stands. A group, so that it may stand
 * in other groups of the relation's filter.
 */
export interface Join {
  kind: "join";
  filters: readonly [];
  field: FieldPath;
  operator: JoinOperator;
  outer: FieldPath;
}

const JOIN_OPERATORS = ["==", "!=", ">", ">=", "<", "<="] as const;
export type JoinOperator = (typeof JOIN_OPERATORS)[number];

export const isRelation = (group: Group): group is Relation => group.kind === "some" || group.kind === "none";

/** Returns the relations of a filter, those inside of its groups and of other relations too. */
export function* relationsIn({ groups }: ParsedFilter): Generator<Relation> {
  for (const group of groups) {
    if (isRelation(group)) {
      yield group;
      if (group.readable !== null) yield* relationsIn(group.readable);
    }
    for (const filter of group.filters) yield* relationsIn(filter);
  }
}

/** Whether a filter asks for records of other tables. */
export const hasRelations = (filter: ParsedFilter): boolean =>
  filter.groups.length > 0 && relationsIn(filter).next().done !== true;

export const NO_FILTER: ParsedFilter = { all: [], groups: [] };
/** Matches every record by a condition that does. */
const EVERYTHING: ParsedFilter = { all: [], groups: [{ kind: "not", filters: [] }] };

/** Whether the filter matches every record because it has no condition. */
export const isEmpty = ({ all, groups }: ParsedFilter): boolean => all.length + groups.length === 0;

/** Returns a filter that has no relations, for evaluating it on a record. */
export function plain(filter: ParsedFilter): MatchFilter {
  if (hasRelations(filter)) throw new Error("a filter with relations was evaluated without looking them up");
  return filter as MatchFilter; // The other groups have the same form.
}

/** Returns the conditions of a filter, those inside of its groups too. */
export function* conditionsIn({ all, groups }: ParsedFilter): Generator<Condition> {
  yield* all;
  for (const { filters } of groups) for (const filter of filters) yield* conditionsIn(filter);
}

/** Returns a filter whose conditions are mapped, inside of its groups too, in the order of `conditionsIn`. */
export function mapConditions(filter: ParsedFilter, map: (condition: Condition) => Condition): ParsedFilter {
  const mapped = (one: ParsedFilter): ParsedFilter => ({
    all: one.all.map(map),
    groups: one.groups.map((group): Group => {
      if (group.kind === "join") return group;
      if (isRelation(group)) {
        const filters = [mapped(group.filters[0])] as const;
        return { ...group, filters, readable: group.readable === null ? null : mapped(group.readable) };
      }
      return { kind: group.kind, filters: group.filters.map(mapped) };
    }),
  });
  return mapped(filter);
}

interface FilterOptions {
  /** The parameter named in errors. */
  name: string;
  /** Number of conditions and groups of the list itself; inside of groups there may be more. */
  conditionsMax: number;
  /** Whether relations are taken, as in rules; false by default. */
  takesRelations?: boolean;
  /** What the sender of a request may read of the tables that its relations ask. Absent: relations are not taken. */
  readable?: ReadableTables;
}

/**
 * What a caller may read, by table: everything, the records that match a filter, or nothing. Errors: 403 for a table whose rule looks
 * at each record. `seesAddresses`: also hidden ones in the table of users; false by default.
 */
export type ReadableTables = ((model: TableModel) => "all" | "nothing" | ParsedFilter) & { seesAddresses?: boolean };

/**
 * Parses a filter of a body or a rule: a list of conditions and groups, or a single group; null for none. Errors: 400 naming the
 * condition with an unknown field or operator, or a value of the wrong type; 400 for too many, or too many levels. [TB16] [TB600]
 */
export function parseFilter(model: TableModel, value: unknown, options: FilterOptions): ParsedFilter {
  if (value === undefined || value === null) return NO_FILTER;
  checkLength(value, options);
  return new Parsing(model, options).filter(value, options.name, 0);
}

function checkLength(value: unknown, { name, conditionsMax }: FilterOptions): void {
  if (!Array.isArray(value) || value.length <= conditionsMax) return;
  throw badField(name, "too_long", `${name} must have at most ${conditionsMax} conditions, got ${value.length}`);
}

/** Parses a filter of which one condition, or group, must match. Errors: as `parseFilter`. */
export function parseAlternatives(model: TableModel, value: unknown, options: FilterOptions): ParsedFilter {
  if (!Array.isArray(value)) return parseFilter(model, value, options);
  checkLength(value, options);
  if (value.length === 0) return NO_FILTER;
  // One by one: a group of several conditions is one alternative.
  return { ...NO_FILTER, groups: [{ kind: "or", filters: new Parsing(model, options).elements(value, options.name) }] };
}

/** Returns a filter that matches where both do. */
export const withBoth = (left: ParsedFilter, right: ParsedFilter): ParsedFilter => ({
  all: [...left.all, ...right.all],
  groups: [...left.groups, ...right.groups],
});

/** The parsing of a filter on one table, which counts conditions and groups at every level. */
class Parsing {
  readonly #model: TableModel;
  readonly #options: FilterOptions;
  readonly #seen: { count: number };
  /** The table in whose filter this one's stands; null outside of relations. */
  readonly #outer: TableModel | null;

  constructor(
    model: TableModel,
    options: FilterOptions,
    inside: { seen: { count: number }; outer: TableModel } | null = null,
  ) {
    this.#model = model;
    this.#options = options;
    this.#seen = inside?.seen ?? { count: 0 };
    this.#outer = inside?.outer ?? null;
  }

  /** Parses the elements of a list, each as a filter by itself. */
  elements(list: readonly unknown[], name: string): ParsedFilter[] {
    return list.map((element, index) => this.#element(element, `${name}.${index}`, 0));
  }

  filter(value: unknown, name: string, level: number): ParsedFilter {
    if (!Array.isArray(value)) {
      if (isJsonObject(value)) return this.#element(value, name, level);
      throw badField(name, "invalid_type", `${name} must be an array of [field, operator, value], or a group`);
    }
    if (value.length === 1) return this.#element(value[0], `${name}.0`, level);
    const all: Condition[] = [];
    const groups: Group[] = [];
    for (const [index, element] of value.entries()) {
      const found = this.#element(element, `${name}.${index}`, level);
      all.push(...found.all);
      groups.push(...found.groups);
    }
    return { all, groups };
  }

  /** Parses a tuple or a group. */
  #element(value: unknown, name: string, level: number): ParsedFilter {
    this.#seen.count++;
    if (this.#seen.count > FILTER_CONDITIONS_MAX) {
      const message = `${this.#options.name} must have at most ${FILTER_CONDITIONS_MAX} conditions and groups`;
      throw badField(this.#options.name, "too_long", message);
    }
    if (!isJsonObject(value)) return this.#tuple(value, name);
    if (level === FILTER_LEVELS_MAX) {
      throw badField(name, "invalid_value", `${name} nests groups deeper than ${FILTER_LEVELS_MAX} levels`);
    }
    const [kind, ...others] = Object.keys(value);
    if (others.length > 0) throw this.#notGroup(name);
    const inside = (filter: unknown, at: string): ParsedFilter => this.filter(filter, `${name}.${at}`, level + 1);
    switch (kind) {
      case "or": {
        const filters = listIn(value, kind, name).map((one, at) => inside(one, `or.${at}`));
        return { all: [], groups: [{ kind, filters }] };
      }
      case "and":
        return listIn(value, kind, name)
          .map((one, at) => inside(one, `and.${at}`))
          .reduce(withBoth, NO_FILTER);
      case "not":
        return { all: [], groups: [{ kind, filters: [inside(value["not"], "not")] }] };
      case "some":
      case "none":
        if (!this.#takesRelations) throw this.#notGroup(name);
        return { all: [], groups: [this.#relation(kind, value[kind], `${name}.${kind}`, level)] };
      default:
        throw this.#notGroup(name);
    }
  }

  #tuple(value: unknown, name: string): ParsedFilter {
    const [field, operator, wanted]: unknown[] = Array.isArray(value) && value.length === 3 ? value : [];
    const outer = this.#outer;
    if (outer === null || !isJsonObject(wanted) || typeof wanted["field"] !== "string") {
      const condition = parseTuple(this.#model, value, name);
      const isEverything = condition.operator === "hasAll" && condition.value.length === 0;
      return isEverything ? EVERYTHING : { all: [condition], groups: [] };
    }
    return { all: [], groups: [joinOf(this.#model, outer, { field, operator, wanted: wanted["field"] }, name)] };
  }

  get #takesRelations(): boolean {
    return this.#options.takesRelations === true || this.#options.readable !== undefined;
  }

  #relation(kind: "some" | "none", value: unknown, name: string, level: number): Group {
    const { table, where = [], ...others } = isJsonObject(value) ? value : {};
    if (typeof table !== "string" || Object.keys(others).length > 0) {
      throw badField(name, "invalid_value", `${name} must be { table, where }`);
    }
    const found = this.#model.siblings.get(table);
    if (found === undefined) {
      throw badField(
        `${name}.table`,
        "invalid_value",
        `${name}.table: ${table} is not a table of ${this.#model.namespace}`,
      );
    }
    const readable = this.#options.readable?.(found) ?? "all";
    // Rules see every address.
    const seesAddresses = this.#options.readable === undefined || this.#options.readable.seesAddresses === true;
    const model = (seesAddresses ? found.full : null) ?? found;
    // The conditions are not looked at: their errors would tell what the table has.
    if (readable === "nothing") return { kind: kind === "some" ? "or" : "not", filters: [] };
    const parsing = new Parsing(model, this.#options, { seen: this.#seen, outer: this.#model });
    const filter = parsing.filter(where, `${name}.where`, level + 1);
    const joins = filter.groups.filter((one) => one.kind === "join");
    const equal = joins.filter(({ operator }) => operator === "==").map(({ field }) => field.name);
    const index = enteredIndex(model, filter.all, equal) ?? (filter.all.some(isLinked) ? primaryKeyOf(model) : null);
    if (index === null) {
      const fields = [...equal, ...filter.all.filter(({ operator }) => operator === "==").map((one) => one.field.name)];
      const wanted =
        fields.length === 0
          ? "a condition with == on an indexed field"
          : `indexes: [{ fields: ${JSON.stringify(fields)} }]`;
      throw badField(name, "invalid_value", `${name}: no index of ${table} answers it: it needs ${wanted}`);
    }
    const isRequested = this.#options.readable !== undefined;
    return { kind, filters: [filter], model, index, readable: readable === "all" ? null : readable, isRequested };
  }

  #notGroup(name: string) {
    const groups = this.#takesRelations ? "or, and, not, some or none" : "or, and or not";
    return badField(
      name,
      "invalid_value",
      `${name} must be an array [field, operator, value], or a group with ${groups}`,
    );
  }
}

/** Parses a comparison with a field of the outer record. Errors: 400 for unknown fields, and fields of different types. */
function joinOf(
  model: TableModel,
  outer: TableModel,
  { field, operator, wanted }: { field: unknown; operator: unknown; wanted: string },
  name: string,
): Join {
  const found = typeof field === "string" ? resolveField(model, field) : null;
  if (found === null)
    throw badField(name, "unknown_field", `${name}: ${String(field)} is not a field of ${model.name}`);
  const other = resolveField(outer, wanted);
  if (other === null) throw badField(name, "unknown_field", `${name}: ${wanted} is not a field of ${outer.name}`);
  const known = JOIN_OPERATORS.find((one) => one === operator);
  if (known === undefined) {
    throw badField(
      name,
      "invalid_value",
      `${name}: a field is compared by ${JOIN_OPERATORS.join(", ")}, got ${String(operator)}`,
    );
  }
  const isSeveral = found.column.links !== null || other.column.links !== null;
  const isPoint = found.column.type === "geo";
  if (isSeveral || isPoint || found.isJson || other.isJson || comparedAs(found) !== comparedAs(other)) {
    throw badField(name, "invalid_type", `${name}: ${found.name} and ${other.name} must be fields of one type`);
  }
  return { kind: "join", filters: [], field: found, operator: known, outer: other };
}

/** Returns a name that is equal for fields whose values can be compared. */
function comparedAs({ column: { type } }: FieldPath): string {
  if (type === "number" || type === "integer") return "number";
  return type === "boolean" || type === "date" || type === "datetime" || type === "geo" ? type : "text";
}

/** Returns the index that fixes most fields by equality; null when none begins with one of them. */
function enteredIndex(model: TableModel, all: readonly Condition[], joined: readonly string[]): string | null {
  const isEqual = ({ field, operator }: Condition) => !field.isJson && (operator === "==" || operator === "in");
  const equal = new Set([...joined, ...all.filter(isEqual).map(({ field }) => field.name)]);
  let best: string | null = null;
  let most = 0;
  for (const { name, columns } of model.indexes) {
    const end = columns.findIndex((column) => !equal.has(column));
    const entered = end === -1 ? columns.length : end;
    if (entered > most) [best, most] = [name, entered];
  }
  return best;
}

/** Returns the index of the ids, by which the records are found that several references name. */
const primaryKeyOf = (model: TableModel): string => primaryKeyIndexName(model.name);

function listIn(group: JsonObject, kind: "or" | "and", name: string): readonly unknown[] {
  const list = group[kind];
  if (Array.isArray(list)) return list;
  throw badField(`${name}.${kind}`, "invalid_type", `${name}.${kind} must be an array of filters`);
}

/**
 * Returns the filter with copies of its values: a rule may change its arrays for the next caller while a right that it granted is in
 * use. Undefined values of a list are left out: they match nothing, and as JSON they would be null. Errors: 400 for other values that
 * JSON does not have.
 */
export const withOwnValues = (filter: ParsedFilter): ParsedFilter =>
  mapConditions(filter, (condition): Condition => {
    // Their own already.
    if (isAreaCondition(condition) || isLinked(condition)) return condition;
    if (!isListCondition(condition)) return { ...condition, value: jsonCopy(condition.value) };
    return { ...condition, value: condition.value.filter((one) => one !== undefined).map((one) => jsonCopy(one)) };
  });

function parseTuple(model: TableModel, tuple: unknown, name: string): Condition {
  if (!Array.isArray(tuple) || tuple.length !== 3 || typeof tuple[0] !== "string" || typeof tuple[1] !== "string") {
    throw badField(name, "invalid_value", `${name} must be [field, operator, value]`);
  }
  const [fieldName, operator]: [string, string, ...unknown[]] = [tuple[0], tuple[1]];
  // From JSON, or from a rule's code: a value that JSON does not have fails the type checks below.
  const value = tuple[2] as JsonValue | undefined;
  const field = resolveField(model, fieldName);
  if (field === null) throw badField(name, "unknown_field", `${name}: ${fieldName} is not a field of ${model.name}`);
  if (!isFilterOperator(operator)) {
    throw badField(name, "invalid_value", `${name}: "${operator}" is not one of ${OPERATOR_NAMES}`);
  }
  if (value === undefined) throw badField(name, "invalid_value", `${name} must be [field, operator, value]`);
  if (isAreaOperator(operator)) return { field, operator, value: areaIn(field, operator, value, name) };
  refuseOthers(field, operator, name);
  if (isIdsOperator(operator)) return { field, operator, value: idsOf(value, `${name}: ${operator}`, name) };
  if (isListOperator(operator)) {
    if (!Array.isArray(value)) throw badField(name, "invalid_type", `${name}: ${operator} takes an array of values`);
    if (value.length > IN_VALUES_MAX) {
      throw badField(
        name,
        "too_long",
        `${name}: ${operator} takes at most ${IN_VALUES_MAX} values, got ${value.length}`,
      );
    }
    for (const one of value) if (one !== null) checkValue(field, "==", one, name);
    return { field, operator, value: value.map((one) => storedValue(field, "==", one)) };
  }
  checkValue(field, operator, value, name);
  return { field, operator, value: storedValue(field, operator, value) };
}

const isInstant = (field: FieldPath, operator: FilterOperator): boolean =>
  field.column.type === "datetime" && OPERATORS[operator].takes !== "text" && OPERATORS[operator].takes !== "part";

/** Returns the value in the form in which values of the field are stored. */
const storedValue = (field: FieldPath, operator: FilterOperator, value: JsonValue): JsonValue =>
  typeof value === "string" && isInstant(field, operator) ? instantOf(value) : value;

function checkValue(field: FieldPath, operator: FilterOperator, value: JsonValue, name: string): void {
  const wrong = (wanted: string): never => {
    throw badField(name, "invalid_type", `${name}: ${field.name} ${operator} takes ${wanted}, got ${shown(value)}`);
  };
  if (typeof value === "string" && !value.isWellFormed()) throw badField(name, "invalid_value", illFormed(name));
  // From a rule's code, or from text such as 1e999. As JSON, which identifies filters, these would all be null.
  if (typeof value === "number" && !Number.isFinite(value)) {
    throw badField(name, "invalid_value", `${name}: ${field.name} ${operator} takes a finite number, got ${value}`);
  }
  const { takes } = OPERATORS[operator];
  const isText = takes === "text" || takes === "part";
  if (isText && typeof value === "string" && value.length > NEEDLE_LENGTH_MAX) {
    const message = `${name}: ${operator} takes at most ${NEEDLE_LENGTH_MAX} characters, got ${value.length}`;
    throw badField(name, "too_long", message);
  }
  if (value === null) {
    if (takes !== "value" && !(takes === "part" && field.isJson)) wrong("a value that is not null");
    return;
  }
  if (takes === "text" && typeof value !== "string") wrong("text");
  if (takes === "id" && typeof value !== "string") wrong("an id");
  if (field.isJson) {
    const isOrdered = typeof value === "string" || typeof value === "number";
    if (!isOrdered && takes === "ordered") wrong("text or a number");
    return;
  }
  if (field.column.type === "geo") wrong("null alone; points are found by within and inBox");
  const wanted = field.column.type === "boolean" ? "boolean" : isNumeric(field) ? "number" : "string";
  if (isText && wanted !== "string") wrong("a text field");
  if (typeof value !== wanted) wrong(wanted === "string" ? "text" : `a ${wanted}`);
  if (field.column.type === "date" && !isText && !isIsoDate(String(value))) {
    const message = `${name}: ${field.name} ${operator} takes a date such as 2024-05-06, got ${shown(value)}`;
    throw badField(name, "invalid_value", message);
  }
  if (isInstant(field, operator) && instantOf(String(value)) === null) {
    const wantedTime = "a date and time with an offset, such as 2024-05-06T04:00:00.000Z";
    throw badField(
      name,
      "invalid_value",
      `${name}: ${field.name} ${operator} takes ${wantedTime}, got ${shown(value)}`,
    );
  }
}

function shown(value: JsonValue): string {
  const text = JSON.stringify(value);
  return text.length > SHOWN_LENGTH_MAX ? `${text.slice(0, SHOWN_LENGTH_MAX)}…` : text;
}

const isNumeric = (field: FieldPath): boolean => field.column.type === "number" || field.column.type === "integer";
