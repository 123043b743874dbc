import type { SqlValue } from "../../../db/index.ts";
import type { FieldPath } from "../model/field-path.ts";
import { isAreaOperator, OPERATORS } from "../model/operators.ts";
import {
  type Condition,
  isLinked,
  isListCondition,
  type Join,
  type ParsedFilter,
  type Relation,
  relationsIn,
} from "./filter.ts";
import { lengthOf } from "./slots.ts";
import type { Sort } from "./sort.ts";

// Estimates of how long a statement holds the main thread in the worst case, measured on one core of a 2.5 GHz
// server. Statements over QUICK_READ_NS run in a query process, which adds about 100 µs.

const QUICK_READ_NS = 5_000_000;

const ROW_NS = 60;
const BYTE_NS = 0.5;
const COLUMN_CONDITION_NS = 10;
/** Cost per condition on a JSON value, and per byte of it: the value is parsed once per row, and searched for each condition. */
const JSON_CONDITION_NS = 400;
const JSON_PARSED_BYTE_NS = 2;
/** Cost per condition on a point: of its distance, or of finding it in an R-tree. */
const AREA_CONDITION_NS = 2_500;
/** Cost per byte of a substring search: `instr` compares at each byte of the text, as when it searches for `aaab` in `aaaa…`. */
const SUBSTRING_BYTE_NS = 15;
const SUBSTRING_NEEDLE_NS = 0.03;
/** Cost per byte of a text that is compared without case, or in part, for which it is copied first. */
const COPIED_BYTE_NS = 2;
const SORTED_ROW_NS = 150;
/** Rows up to which a sort is cheap. One that keeps more copies whole records. */
const KEPT_ROWS_FEW = 200;
const SORTED_ALL_ROW_NS = 2_000;
const SORTED_ALL_BYTE_NS = 1;
/** Cost of one id that several references are compared with, for each record. */
const LINK_NS = 1_500;
/** Ids of several references that are looked up for each record on the main thread. */
const LINKS_FEW = 4;
/** Cost per bound value: SQLite builds an index of the values of `in` for each execution. */
const PARAM_NS = 1_500;

/** Cost of a statement: fixed, per examined row, and per byte of these rows. */
export interface ReadCost {
  fixedNs: number;
  rowNs: number;
  byteNs: number;
}

/** Returns the cost of testing every row. */
export function scanCost(conditions: readonly Condition[], params: readonly SqlValue[]): ReadCost {
  const cost = { fixedNs: params.length * PARAM_NS, rowNs: ROW_NS, byteNs: BYTE_NS };
  let isParsed = false;
  for (const condition of conditions) {
    const { field, operator, value } = condition;
    if (isLinked(condition)) {
      cost.rowNs += LINK_NS * idCount(condition);
      continue;
    }
    if (isAreaOperator(operator)) cost.rowNs += AREA_CONDITION_NS;
    cost.rowNs += field.isJson ? JSON_CONDITION_NS : COLUMN_CONDITION_NS;
    isParsed ||= field.isJson;
    const { isSearch, isAnyCase } = OPERATORS[operator];
    if (isSearch) cost.byteNs += SUBSTRING_BYTE_NS + lengthOf(value) * SUBSTRING_NEEDLE_NS;
    if (isAnyCase) cost.byteNs += COPIED_BYTE_NS;
  }
  if (isParsed) cost.byteNs += JSON_PARSED_BYTE_NS;
  return cost;
}

/** Cost of asking one relation about a record, for each place of its index that is looked at. */
const RELATION_NS = 2_500;
/** Places that a relation may look at for one record on the main thread, where each of many records is tested. */
const RELATION_PLACES_MAX = 32;

/** Returns the cost with that of asking the relations of a filter about each record. */
export function relatedCost(cost: ReadCost, filter: ParsedFilter): ReadCost {
  let { rowNs } = cost;
  for (const relation of relationsIn(filter)) {
    const places = placesOf(relation);
    if (places === null) return { ...cost, fixedNs: Number.POSITIVE_INFINITY };
    rowNs += RELATION_NS * places;
  }
  return { ...cost, rowNs };
}

/** Whether a relation of the filter may take long for one record. */
export const hasHeavyRelation = (filter: ParsedFilter): boolean =>
  relationsIn(filter).some((relation) => (placesOf(relation) ?? Number.POSITIVE_INFINITY) > RELATION_PLACES_MAX);

/** Parts of a relation that enter its index: conditions and comparisons with the outer record, by equality. */
export interface Entering {
  conditions: readonly Condition[];
  joins: readonly Join[];
  /** Whether they lead to one record of a unique index at most. */
  isSingle: boolean;
}

export function enteringOf({ model, index, filters: [{ all, groups }] }: Relation): Entering {
  const { columns = [], isUnique = false } = model.indexes.find(({ name }) => name === index) ?? {};
  const byEqual = (operator: string): boolean => operator === "==" || operator === "in";
  const conditions = all.filter(({ field, operator }) => !field.isJson && byEqual(operator));
  const joins = groups.filter((one) => one.kind === "join").filter(({ operator }) => byEqual(operator));
  const equal = new Set([...conditions, ...joins].map(({ field }) => field.name));
  const end = columns.findIndex((column) => !equal.has(column));
  const entered = new Set(end === -1 ? columns : columns.slice(0, end));
  const isEntering = ({ field }: { field: FieldPath }): boolean => entered.has(field.name);
  return {
    conditions: conditions.filter(isEntering),
    joins: joins.filter(isEntering),
    isSingle: isUnique && entered.size === columns.length,
  };
}

/** Returns the number of places of an index at which the conditions look. */
export const placesIn = ({ conditions }: Entering): number =>
  conditions.reduce((places, one) => places * (isListCondition(one) ? one.value.length : 1), 1);

/** Returns the number of places of its index that answer a relation; null when it may examine any number of records. */
function placesOf(relation: Relation): number | null {
  if (relation.isRequested) return null;
  const entering = enteringOf(relation);
  const { all, groups } = relation.filters[0];
  const isExact = entering.conditions.length + entering.joins.length === all.length + groups.length;
  return entering.isSingle || isExact ? placesIn(entering) : null;
}

/**
 * Returns the cost with the sort of the matches, unless an index provides their order. `kept`: rows up to the end of the page.
 */
export function sortedCost(cost: ReadCost, sort: Sort, kept: number): ReadCost {
  const isAll = kept > KEPT_ROWS_FEW;
  const isJson = sort.terms.some(({ field }) => field.isJson);
  return {
    fixedNs: cost.fixedNs,
    rowNs:
      cost.rowNs + (isAll ? SORTED_ALL_ROW_NS : SORTED_ROW_NS) + (isJson ? JSON_CONDITION_NS * sort.terms.length : 0),
    byteNs: cost.byteNs + (isAll ? SORTED_ALL_BYTE_NS : 0) + (isJson ? JSON_PARSED_BYTE_NS : 0),
  };
}

/** Returns the cost with that of calculating a distance for each record. */
export const areaCost = (cost: ReadCost): ReadCost => ({ ...cost, rowNs: cost.rowNs + AREA_CONDITION_NS });

export const isQuick = (cost: ReadCost, rows: number, bytes: number): boolean =>
  cost.fixedNs + cost.rowNs * rows + cost.byteNs * bytes <= QUICK_READ_NS;

/** Whether a statement may run on the main thread when an index bounds the examined records. */
export const isLight = ({ fixedNs }: ReadCost): boolean => fixedNs <= QUICK_READ_NS / 2;

/** Returns the number of ids that a condition on several references names. */
export const idCount = ({ operator, value }: Condition): number =>
  operator === "has" ? 1 : Array.isArray(value) ? value.length : lengthOf(value);

/** Whether a condition may take long for one record. */
export const isHeavy = (condition: Condition): boolean =>
  isLinked(condition) ? idCount(condition) > LINKS_FEW : isHeavyValue(condition);

const isHeavyValue = ({ field, operator }: Condition): boolean =>
  field.isJson || OPERATORS[operator].isSearch || OPERATORS[operator].isAnyCase;
