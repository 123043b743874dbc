import { tooLarge } from "../../../../kernel/errors.ts";
import type { MatchFilter } from "../../../../kernel/records/filter-match.ts";
import type { TableRecord } from "../../../config/types.ts";
import { primaryKeyIndexName, quoteIdentifier } from "../../../db/index.ts";
import {
  type Condition,
  isAreaCondition,
  isLinked,
  NO_FILTER,
  type ParsedFilter,
  type Relation,
} from "../filters/filter.ts";
import { filterToSql, join, RELATED, relationToSql, type SqlCondition } from "../filters/filter-sql.ts";
import { ownConditionsIn, ownRelationsIn } from "../filters/own-parts.ts";
import { enteringOf, idCount, placesIn } from "../filters/read-cost.ts";
import {
  CONDITION_COST_MAX,
  CONDITION_ROWS,
  RELATED_BYTE_COST,
  RELATED_COPY_COST,
  RELATED_ROWS_MAX,
  RELATED_SEARCH_COST,
  RELATION_ROWS,
} from "../limits.ts";
import type { Queries } from "../lookups/lookup-source.ts";
import { OPERATORS } from "../model/operators.ts";
import { settledBy } from "../rules/relations.ts";

/** Number of records that the relations of a request have examined so far, and their bytes. */
export interface Examined {
  rows: number;
  bytes: number;
}

/**
 * Returns the filter for this record: its relations are asked on the main thread, and replaced by what was found. What they may examine is
 * counted first. Errors: 413 for more records than `rowsMax`, or more text than CONDITION_COST_MAX.
 */
export function settledNow(
  queries: NonNullable<Queries>,
  filter: ParsedFilter,
  record: TableRecord,
  examined: Examined,
  rowsMax = RELATED_ROWS_MAX,
): MatchFilter {
  return settledBy(filter, record, (relation) => {
    new Examining(queries, examined, rowsMax).relation([{ relation, isVisible: false }], 1);
    const { sql, params } = relationToSql({ ...relation, kind: "some" }, "", 1);
    return queries.query<{ found: number }>(`SELECT ${sql} AS "found"`).get(...params)?.found === 1;
  });
}

/** A relation on the way to another one within it. `isVisible`: only its records that the caller may read lead on. */
interface PathStep {
  relation: Relation;
  isVisible: boolean;
}

type Way = readonly [...PathStep[], PathStep];

/** Counts the records to which the indexes of relations lead, each within the ones before it. */
class Examining {
  readonly #queries: NonNullable<Queries>;
  readonly #examined: Examined;
  readonly #rowsMax: number;

  constructor(queries: NonNullable<Queries>, examined: Examined, rowsMax: number) {
    this.#queries = queries;
    this.#examined = examined;
    this.#rowsMax = rowsMax;
  }

  /** Counts the last relation of the way, which is asked for `above` records. */
  relation(way: Way, above: number): void {
    const { relation } = last(way);
    const [filter] = relation.filters;
    const { readable } = relation;
    const own = [...ownConditionsIn(filter), ...ownConditionsIn(readable ?? NO_FILTER)];
    this.#spend(RELATION_ROWS + CONDITION_ROWS * own.length);
    this.#spend(above * placesIn(enteringOf(relation)));
    const linked = linkedIn(relation);
    for (const one of linked) this.#linked(one);
    const each = own.reduce((cost, one) => cost + (linked.includes(one) ? 0 : rowCost(one)), 1);
    const { rows } = this.#one<{ rows: number }>(way, "1", `count(*) AS "rows"`, each);
    this.#spend(rows * each);
    if (rows === 0) return;
    this.#within(way, readable, rows);
    const visible: Way = [...way.slice(0, -1), { relation, isVisible: true }];
    this.#texts(visible, [...ownConditionsIn(filter)]);
    this.#texts(way, [...ownConditionsIn(readable ?? NO_FILTER)]);
    this.#within(visible, filter, rows);
  }

  #within(way: Way, filter: ParsedFilter | null, rows: number): void {
    for (const relation of ownRelationsIn(filter ?? NO_FILTER)) {
      this.relation([...way, { relation, isVisible: false }], rows);
    }
  }

  /** Counts what an index of several references leads to, which is found before anything else. */
  #linked({ field, value }: Condition): void {
    const ids = JSON.stringify(Array.isArray(value) ? value : [value]);
    const sql = `SELECT count(*) AS "rows" FROM (SELECT 1 FROM ${field.column.links} WHERE "target" IN (SELECT value FROM json_each(?)) LIMIT ${this.#rowsMax + 1})`;
    this.#spend(this.#queries.query<{ rows: number }>(sql).get(ids)?.rows ?? 0);
  }

  /** Counts the bytes that conditions look at in the last relation's records. */
  #texts(way: Way, conditions: readonly Condition[]): void {
    const alias = aliasOf(way.length);
    const weights = new Map<string, number>();
    const entering = new Set(enteringOf(last(way).relation).conditions);
    for (const one of conditions) {
      const cost = byteCost(one);
      const name = `${alias}.${one.field.column.sql}`;
      if (cost > 0 && !entering.has(one)) weights.set(name, (weights.get(name) ?? 0) + cost);
    }
    if (weights.size === 0) return;
    const select = [...weights].map(([name, cost]) => `coalesce(octet_length(${name}), 0) * ${cost}`).join(" + ");
    const sum = `coalesce(sum("bytes"), 0) AS "bytes"`;
    const { bytes } = this.#one<{ bytes: number }>(way, `${select} AS "bytes"`, sum, 1);
    this.#examined.bytes += bytes;
    if (this.#examined.bytes > CONDITION_COST_MAX) {
      throw tooLarge("The relations compare too much text or JSON; compare shorter fields, or fewer records");
    }
  }

  /** Returns an aggregate over the records of a way, of which no more are read than may be examined. */
  #one<Row>(way: Way, select: string, aggregate: string, each: number): Row {
    const { from, where } = wayToSql(way);
    const limit = Math.max(0, Math.floor((this.#rowsMax - this.#examined.rows) / each)) + 1;
    const sql = `SELECT ${aggregate} FROM (SELECT ${select} FROM ${from} WHERE ${where.sql} LIMIT ?)`;
    // An aggregate has one row.
    return this.#queries.query<Row & object>(sql).get(...where.params, limit) as Row;
  }

  #spend(rows: number): void {
    this.#examined.rows += rows;
    if (this.#examined.rows <= this.#rowsMax) return;
    throw tooLarge(
      `The relations would examine more than ${this.#rowsMax} records; name more fields of an index with ==, or fewer values`,
    );
  }
}

const last = (way: Way): PathStep => way[way.length - 1] as PathStep; // It has one at least.

const aliasOf = (level: number): string => `${RELATED}${level}`;

/** Returns the records of all steps of a way, in the order in which they are found. */
function wayToSql(way: Way): { from: string; where: SqlCondition } {
  const froms: string[] = [];
  const parts: SqlCondition[] = [];
  for (const [index, { relation, isVisible }] of way.entries()) {
    const alias = aliasOf(index + 1);
    const inside = { level: index + 1, outer: index === 0 ? "" : `${aliasOf(index)}.` };
    froms.push(`${relation.model.sql} AS ${alias} INDEXED BY ${quoteIdentifier(relation.index)}`);
    const { conditions, joins } = enteringOf(relation);
    const entering = { all: [...conditions, ...linkedIn(relation)], groups: joins };
    const form = { equality: "IS", links: "enter" } as const;
    const visible = isVisible && relation.readable !== null ? relation.readable : NO_FILTER;
    for (const part of [
      filterToSql(entering, `${alias}.`, form, inside),
      // Deeper names than those of the way.
      filterToSql(visible, `${alias}.`, undefined, { level: way.length, outer: "" }),
    ]) {
      if (part !== null) parts.push(part);
    }
  }
  // SQLite keeps this order of tables.
  return { from: froms.join(" CROSS JOIN "), where: join(parts, "AND") };
}

/** Returns the conditions on several references by whose index a relation finds its records. */
const linkedIn = ({ model, index, filters: [{ all }] }: Relation): readonly Condition[] =>
  index === primaryKeyIndexName(model.name) ? all.filter(isLinked) : [];

/** Returns how many records' time a condition takes for each. */
function rowCost(condition: Condition): number {
  if (isLinked(condition)) return idCount(condition);
  if (isAreaCondition(condition)) return 2;
  return condition.field.isJson ? 1 : 0;
}

/** Returns the weight of a byte of the value that a condition looks at; 0 where values are short. */
function byteCost({ field, operator }: Condition): number {
  const { type } = field.column;
  if (type === "number" || type === "integer" || type === "boolean" || type === "date" || type === "datetime") return 0;
  if (field.column.links !== null || type === "geo") return 0;
  const { isSearch, isAnyCase } = OPERATORS[operator];
  return isAnyCase ? RELATED_COPY_COST : isSearch ? RELATED_SEARCH_COST : RELATED_BYTE_COST;
}
