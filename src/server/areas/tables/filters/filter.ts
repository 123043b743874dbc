import { badField } from "../../../../kernel/errors.ts";
import { jsonCopy } from "../../../../kernel/json/copy.ts";
import { isJsonObject, type JsonObject } from "../../../../kernel/json/json.ts";
import { type MatchFilter, matches } from "../../../../kernel/records/filter-match.ts";
import { primaryKeyIndexName } from "../../../db/index.ts";
import { FILTER_CONDITIONS_MAX, FILTER_LEVELS_MAX } from "../limits.ts";
import { type FieldPath, resolveField } from "../model/field-path.ts";
import type { TableModel } from "../model/model.ts";
import { isAreaOperator, isListOperator } from "../model/operators.ts";
import { type AreaCondition, type Condition, type LinkedCondition, type ListCondition, parseTuple } from "./tuple.ts";

export type { Condition } from "./tuple.ts";

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
  /** Whether changes are matched, which have the public address of a user alone; false by default. */
  isLive?: boolean;
  /** Records that the sender of a request may read of the tables that its relations ask. Absent: relations are not taken. */
  readable?: ReadableTables;
}

/** The user who sends a filter, whose record in the table of users has this address for that user. */
export interface OwnAddress {
  id: string;
  email: string | null;
}

/**
 * Rights of a caller to read tables, by table: everything, the records that match a filter, or nothing. Errors: 403 for a table whose rule looks
 * at each record. `seesAddresses`: also hidden ones in the table of users; false by default. `own`: the caller's own address.
 */
export type ReadableTables = ((model: TableModel) => "all" | "nothing" | ParsedFilter) & {
  seesAddresses?: boolean;
  own?: OwnAddress | undefined;
};

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
    for (let index = 0; index < value.length; index++) {
      const found = this.#element(value[index], `${name}.${index}`, level);
      for (const condition of found.all) all.push(condition);
      for (const group of found.groups) groups.push(group);
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
      if (isEverything) return EVERYTHING;
      if (this.#options.isLive === true && isHiddenAddress(this.#model, condition.field)) {
        const message = `${name}: ${condition.field.name} is not compared in subscriptions, since not everybody sees the same address`;
        throw badField(name, "invalid_value", message);
      }
      const own = this.#options.readable?.own;
      return own === undefined || !isHiddenAddress(this.#model, condition.field)
        ? { all: [condition], groups: [] }
        : forOneself(this.#model, condition, own);
    }
    const join = joinOf(this.#model, outer, { field, operator, wanted: wanted["field"] }, name);
    const isOfOne = this.#options.readable?.own !== undefined || this.#options.isLive === true;
    if (isOfOne && (isHiddenAddress(this.#model, join.field) || isHiddenAddress(outer, join.outer))) {
      throw badField(name, "invalid_value", `${name}: ${NO_OWN_ADDRESS}, and is not compared with other fields`);
    }
    return { all: [], groups: [join] };
  }

  get #takesRelations(): boolean {
    return this.#options.takesRelations === true || this.#options.readable !== undefined;
  }

  #relation(kind: "some" | "none", value: unknown, name: string, level: number): Group {
    const named: JsonObject = isJsonObject(value) ? value : {};
    const { table, where = [] } = named;
    if (typeof table !== "string" || Object.keys(named).some((key) => key !== "table" && key !== "where")) {
      throw badField(name, "invalid_value", `${name} must be { table, where }`);
    }
    const found = this.#model.siblings.get(table);
    if (found === undefined) {
      const message = `${name}.table: ${table} is not a table of ${this.#model.namespace}, or is a view`;
      throw badField(`${name}.table`, "invalid_value", message);
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

/** Reason why a request of a user is refused that would take one's own address for a hidden one. */
export const NO_OWN_ADDRESS = "email has for each user another one that is hidden from the others";

/** Whether the field is the address in the table of users, as those see it who do not see every address. */
export const isHiddenAddress = (model: TableModel, { column }: Pick<FieldPath, "column">): boolean =>
  model.full !== null && column.name === "email";

/** Returns a condition on addresses as the user sees them: the own record has the own address, whether or not others see it. */
function forOneself(model: TableModel, condition: Condition, { id, email }: OwnAddress): ParsedFilter {
  const field = resolveField(model, "id");
  if (field === null) throw new Error("the table of users has no id");
  const isOneself: ParsedFilter = { all: [{ field, operator: "==", value: id }], groups: [] };
  const filter: ParsedFilter = { all: [condition], groups: [] };
  return matches(plain(filter), { email })
    ? { all: [], groups: [{ kind: "or", filters: [isOneself, filter] }] }
    : { all: [condition], groups: [{ kind: "not", filters: [isOneself] }] };
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
  // Asked for each request: without a set, which costs more than the few conditions.
  const isFixed = (column: string): boolean =>
    joined.includes(column) ||
    all.some(
      ({ field, operator }) => field.name === column && !field.isJson && (operator === "==" || operator === "in"),
    );
  let best: string | null = null;
  let most = 0;
  for (const { name, columns } of model.indexes) {
    let entered = 0;
    for (const column of columns) {
      if (!isFixed(column)) break;
      entered++;
    }
    if (entered > most) {
      best = name;
      most = entered;
    }
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
  isUnshared(filter)
    ? filter
    : mapConditions(filter, (condition): Condition => {
        // Their own already.
        if (isAreaCondition(condition) || isLinked(condition)) return condition;
        if (!isListCondition(condition)) return { ...condition, value: jsonCopy(condition.value) };
        return { ...condition, value: condition.value.filter((one) => one !== undefined).map((one) => jsonCopy(one)) };
      });

/** Whether all values are texts, numbers, booleans or null, which nobody can change. */
const isUnshared = ({ all, groups }: ParsedFilter): boolean =>
  all.every(({ value }) => value === null || UNSHARED.has(typeof value)) &&
  groups.every(
    (group) =>
      group.filters.every(isUnshared) && (!isRelation(group) || group.readable === null || isUnshared(group.readable)),
  );
const UNSHARED: ReadonlySet<string> = new Set(["string", "number", "boolean"]);
