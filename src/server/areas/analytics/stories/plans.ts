import { Database } from "bun:sqlite";
import { BoundedMap } from "../../../../kernel/bounded-map.ts";
import { quoteIdentifier } from "../../../db/index.ts";
import { INDEX_CANDIDATES_MAX, INDEX_FIELDS_MAX, PLANS_MAX } from "./limits.ts";
import type { PlanStep } from "./model.ts";

/** Plan of a statement, and the index that would help it. */
export interface Planned {
  plan: PlanStep[] | null;
  index: { table: string; fields: string[] } | null;
}

const NONE: Planned = { plan: null, index: null };

/** Asks for the plans of statements, and tries which index would help. Both are remembered by text: a schema changes at a start. */
export class Plans {
  readonly #known = new BoundedMap<string, Planned>(PLANS_MAX);

  /** Returns the plan, with an index where the statement is slow without. Nothing for a file that is closed. */
  of(sqlite: Database, path: string, sql: string, isSlow: boolean): Planned {
    const key = `${isSlow} ${path} ${sql}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const plan = explain(sqlite, sql);
    const planned = plan === null ? NONE : { plan, index: isSlow ? helpfulIndex(sqlite, sql, plan) : null };
    this.#known.set(key, planned);
    return planned;
  }
}

/** Returns the plan; null where SQLite makes none, as for a function that only other processes have. */
function explain(sqlite: Database, sql: string): PlanStep[] | null {
  try {
    using statement = sqlite.prepare<PlanStep, []>(`EXPLAIN QUERY PLAN ${sql}`);
    return statement.all().map(({ id, parent, detail }) => ({ id, parent, detail }));
  } catch {
    return null;
  }
}

const isScan = ({ detail }: PlanStep): boolean => /^SCAN (?!CONSTANT)/.test(detail);
const isSort = ({ detail }: PlanStep): boolean => detail.startsWith("USE TEMP B-TREE FOR ORDER BY");

/** Counts what makes a plan slow: tables that are read as a whole, and orders that no index has. */
const slownessOf = (plan: readonly PlanStep[]): number => 2 * plan.filter(isScan).length + plan.filter(isSort).length;

/** Reads the tables that a statement names, and their indexes: a config may declare hundreds. */
const SCHEMA = `SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND type IN ('table', 'index')
  AND sql NOT LIKE 'CREATE VIRTUAL%' AND instr(?1, '"' || tbl_name || '"') > 0 ORDER BY type DESC`;

/**
 * Returns an index with which SQLite has a better plan; null: none of those that the statement's conditions and order suggest. They
 * are tried on an empty copy of the schema, so that the answer is SQLite's own.
 */
function helpfulIndex(sqlite: Database, sql: string, plan: readonly PlanStep[]): Planned["index"] {
  const before = slownessOf(plan);
  if (before === 0) return null;
  using copy = new Database(":memory:");
  try {
    const schema = sqlite.query<{ sql: string }, [string]>(SCHEMA).all(sql);
    for (const { sql: create } of schema) copy.run(create);
    let best: Planned["index"] = null;
    let least = before;
    for (const { table, fields } of candidates(copy, sql)) {
      const columns = fields.map(quoteIdentifier).join(", ");
      copy.run(`CREATE INDEX "tried" ON ${quoteIdentifier(table)} (${columns})`);
      const tried = explain(copy, sql);
      copy.run('DROP INDEX "tried"');
      if (tried?.some(({ detail }) => detail.includes("INDEX tried")) !== true) continue;
      const slowness = slownessOf(tried);
      const isShorter = slowness === least && best !== null && fields.length < best.fields.length;
      if (slowness < least || isShorter) [best, least] = [{ table, fields }, slowness];
    }
    return best;
  } catch {
    // A statement about tables that the copy lacks, such as those of a search.
    return null;
  }
}

/** Returns indexes that the conditions and the order of a statement suggest. */
function candidates(copy: Database, sql: string): { table: string; fields: string[] }[] {
  const tables = [...sql.matchAll(/(?:FROM|JOIN|UPDATE) "([^"]+)"/g)].flatMap(([, name]) => name ?? []);
  return [...new Set(tables)]
    .flatMap((table) => {
      const columns = new Set(
        copy
          .query<{ name: string }, [string]>("SELECT name FROM pragma_table_info(?)")
          .all(table)
          .map(({ name }) => name),
      );
      const namesIn = (text: string, pattern: RegExp): string[] => {
        const names = [...text.matchAll(pattern)].map(([, name = ""]) => name);
        return [...new Set(names)].filter((name) => columns.has(name) && name !== "id");
      };
      const equal = namesIn(sql, /"([^"]+)" (?:=|IS|IN) /g);
      const ranged = namesIn(sql, /"([^"]+)" (?:<|>|<=|>=|BETWEEN|LIKE|GLOB) /g);
      const [, order = ""] = /ORDER BY (.*)$/s.exec(sql) ?? [];
      const sorted = namesIn(order, /"([^"]+)"/g);
      // Those of several fields first: of equally good ones the shortest is taken.
      const lists = [
        [...equal, ...sorted],
        [...equal, ...ranged.slice(0, 1)],
        sorted,
        equal,
        ...[...equal, ...ranged].map((field) => [field]),
      ];
      return lists
        .map((fields) => [...new Set(fields)].slice(0, INDEX_FIELDS_MAX))
        .filter((fields) => fields.length > 0)
        .map((fields) => ({ table, fields }));
    })
    .slice(0, INDEX_CANDIDATES_MAX);
}
