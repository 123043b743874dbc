import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { countedMarks, openSqlFile } from "../../../../../tests/support/d1-file.ts";
import { random, testSeed } from "../../../../../tests/support/random.ts";
import { tokenizeSql } from "../../../../kernel/sql/tokens.ts";
import { EscapeError, QueryError } from "../query.ts";
import { executeQuery, openConnection } from "./execute.ts";

// SQLite itself is the oracle: the tokenizer must classify words, blanks and illegal characters as SQLite does.

const directory = mkdtempSync(join(tmpdir(), "d1-tokens-"));
const kept = openSqlFile(join(directory, "a.db"));
const memory = new Database(":memory:");
afterAll(async () => {
  memory.close();
  await kept.close();
  rmSync(directory, { recursive: true });
});

/** Returns the name of the one column that SQLite finds in the statement; null if it refuses it. */
function columnOf(sql: string): string | null {
  try {
    const statement = memory.prepare(sql);
    const [name] = statement.columnNames;
    statement.finalize();
    return name ?? null;
  } catch {
    return null;
  }
}

const kinds = (sql: string): string[] => tokenizeSql(sql).map(({ kind }) => kind);

test("[DQ5] every character separates words, belongs to them or is refused as in SQLite", () => {
  const differing: string[] = [];
  for (let code = 1; code <= 0xffff; code++) {
    if (code >= 0xd800 && code <= 0xdfff) continue;
    const character = String.fromCharCode(code);
    for (const blanks of [character, ` ${character}`, `${character} `]) {
      const tokens = tokenizeSql(`SELECT 1 AS${blanks}x`);
      const isDivided = tokens.map(({ text }) => text).join() === "select,1,as,x";
      const found = columnOf(`SELECT 1 AS${blanks}x`);
      // A quote or a comment swallows the rest; both refuse it then.
      if (isDivided !== (found === "x")) differing.push(`${code.toString(16)} ${JSON.stringify(blanks)}`);
    }
  }
  expect(differing).toEqual([]);
});

test("[DQ5] numbers, blobs, variables, quotes and comments end where SQLite ends them", () => {
  const parts = [
    ..."1 12 1.5 .5 1. 1e5 1e+5 1e 0x1F 0xg 1_000 1a x'00' X'0' x'zz' ?1 ?1a ? :a @a $a #a #1 $a::b $a::b(c) $a(".split(
      " ",
    ),
    ..."$( :: :a:b 'a' 'a''b' \"a\" \"a\"\"b\" `a` [a] [a]] 'a \"a [a /**/ /*/ /* -- ! != ^ \\ { ] ~1 -1 1->'$' 1||2 $a(b )".split(
      " ",
    ),
  ];
  const takes = (sql: string): boolean => {
    try {
      memory.prepare(sql).finalize();
      return true;
    } catch (cause) {
      // Anything but nonsense counts as taken: a column that is missing, say.
      return !/unrecognized token/.test(String(cause));
    }
  };
  const differing = parts.flatMap((one) =>
    ["", ...parts].flatMap((two) => {
      const sql = `SELECT ${one}${two} FROM`;
      // SQLite stops at the first error, so that nonsense after it is not seen there.
      return !takes(sql) && !kinds(sql).includes("illegal") ? [sql] : [];
    }),
  );
  expect(differing).toEqual([]);
});

const WORDS = [
  ..."ATTACH DETACH BEGIN COMMIT END ROLLBACK SAVEPOINT RELEASE VACUUM INTO PRAGMA CREATE TEMP TEMPORARY TABLE VIEW TRIGGER".split(
    " ",
  ),
  ..."EXPLAIN SELECT 1 AS y x 'temp'.q \"temp\".q temp.q [temp] main . IF NOT EXISTS ( ) a (a) ; journal_mode = delete".split(
    " ",
  ),
  ..."'other.db' DATABASE 'other.db'AS'y' IMMEDIATE 'pragma_database_list' FROM , * t INSERT VALUES (1) WITH DELETE".split(
    " ",
  ),
];
const STATEMENTS = [
  "ATTACH 'other.db' AS y",
  "VACUUM INTO 'other.db'",
  "VACUUM main INTO 'other.db'",
  "CREATE TEMP TABLE q (a)",
  "CREATE TEMPORARY VIEW q AS SELECT 1",
  "CREATE TABLE IF NOT EXISTS temp . q (a)",
  "CREATE TABLE 'temp' . q (a)",
  "CREATE TRIGGER temp . q AFTER INSERT ON t BEGIN SELECT 1 ; END",
  "BEGIN IMMEDIATE",
  "SAVEPOINT y",
  "PRAGMA journal_mode = delete",
  "SELECT 1 AS x",
  "VACUUM",
  "CREATE TABLE IF NOT EXISTS main . x (a)",
].map((sql) => sql.split(" "));
const BLANKS = [
  ..." |\t|\n|\f|\r|\v| \v|\ufeff| \ufeff|\ufeff |\u00a0|\u2003|\u200b|\ufffe|/**/|/*/ */|/*|--|--\n|--\r|;|".split(
    "|",
  ),
  ..."$a('|#a(|:a(b)|?1|x''|'|\"|`|[|]|\\|0x|1e|.5|-|->".split("|"),
  ...[" ", " ", " ", " ", " ", " ", " ", " "],
];

test("[DQ5] no accepted statement attaches a file, writes elsewhere or leaves a transaction open", async () => {
  const { chance, below, pick } = random(testSeed(20_261_121));
  const path = join(directory, "a.db");
  const connections = { reader: openConnection(path, "reader"), writer: openConnection(path, "writer") };
  const nextMark = countedMarks();
  connections.writer.database.exec("CREATE TABLE IF NOT EXISTS t (a); PRAGMA synchronous = OFF");
  const pages = () => readdirSync(directory).filter((name) => !/^a\.db(-wal|-shm|-journal)?$/.test(name));
  const before = JSON.stringify(pages());
  const escaped: string[] = [];
  let acceptedCount = 0;
  const workingDirectory = process.cwd();
  process.chdir(directory);
  try {
    for (let turn = 0; turn < 40_000; turn++) {
      const words = chance(0.7) ? pick(STATEMENTS) : Array.from({ length: 1 + below(5) }, () => pick(WORDS));
      const lead = chance(0.5) ? "" : pick(BLANKS);
      const sql = lead + words.map((word) => (chance(0.2) ? word.toLowerCase() : word) + pick(BLANKS)).join("");
      try {
        for (const connection of Object.values(connections)) {
          if ((await executeQuery(connection, { sql, params: [] }, nextMark)) !== null) acceptedCount++;
        }
      } catch (cause) {
        // Refused before it has left anything; the second wall is not to be needed.
        if (cause instanceof EscapeError || !(cause instanceof QueryError)) escaped.push(`${sql}: ${cause}`);
      }
      if (turn % 100 === 0 && JSON.stringify(pages()) !== before) escaped.push(`until ${sql}`);
    }
    expect(JSON.stringify(pages())).toBe(before);
    const mode = connections.writer.database.prepare("PRAGMA journal_mode").get();
    expect(mode).toEqual({ journal_mode: "wal" });
  } finally {
    process.chdir(workingDirectory);
    for (const { database } of Object.values(connections)) database.close();
  }
  expect(escaped).toEqual([]);
  expect(acceptedCount).toBeGreaterThan(1000);
}, 60_000);
