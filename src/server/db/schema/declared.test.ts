import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { type DeclaredColumn, type DeclaredTable, declaredMigration, SchemaMismatch } from "./declared.ts";

let sqlite: Database;

beforeEach(() => {
  sqlite = new Database(":memory:");
  sqlite.run("PRAGMA foreign_keys = ON");
});

afterEach(() => sqlite.close());

function column(name: string, options: Partial<DeclaredColumn> = {}): DeclaredColumn {
  return { name, type: "TEXT", notNull: false, unique: false, check: null, references: null, ...options };
}

function table(name: string, columns: DeclaredColumn[], options: Partial<DeclaredTable> = {}): DeclaredTable {
  const all = [column("id", { notNull: true }), ...columns];
  const columnKinds = Object.fromEntries(all.map((one) => [one.name, one.type.toLowerCase()]));
  return { name, kind: "declared", columnKinds, columns: all, indexes: [], fts: null, migrations: [], ...options };
}

const migrate = (...tables: DeclaredTable[]) => declaredMigration(tables, { namespace: "shared" })(sqlite);

function problemsOf(...tables: DeclaredTable[]): readonly string[] {
  const before = dump();
  try {
    migrate(...tables);
  } catch (error) {
    expect(dump()).toEqual(before);
    expect(sqlite.query("PRAGMA foreign_keys").get()).toEqual({ foreign_keys: 1 });
    if (error instanceof SchemaMismatch) return error.problems;
    return [error instanceof Error ? error.message : String(error)];
  }
  return [];
}

/** Everything in the file: a refused migration must leave it as it was. */
function dump(): unknown {
  const objects = sqlite
    .query<{ name: string; sql: string; type: string }, []>("SELECT * FROM sqlite_master ORDER BY name")
    .all();
  const rows = objects
    .filter(({ type, name }) => type === "table" && !/_fts/.test(name))
    .map(({ name }) => [name, sqlite.prepare(`SELECT * FROM "${name}"`).values()]);
  return { objects: objects.map(({ name, sql }) => [name, sql]), rows };
}

const values = (sql: string) => sqlite.prepare(sql).values();
const indexes = (name: string) =>
  values(
    `SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = '${name}' ORDER BY 1`,
  ).flat();
const counts = () =>
  Object.fromEntries(values(`SELECT name, rows FROM _platform_counts ORDER BY 1`) as [string, number][]);

test("[DB40] new tables, columns and indexes are added, and records stay", () => {
  migrate(table("posts", [column("title")]));
  sqlite.run("INSERT INTO posts VALUES ('a', 'first')");
  migrate(
    table("posts", [column("title"), column("likes", { type: "INTEGER" })], {
      indexes: [{ fields: ["title", "likes"], unique: false }],
    }),
    table("tags", [column("name", { unique: true })]),
  );
  expect(values("SELECT * FROM posts")).toEqual([["a", "first", null]]);
  expect(indexes("posts")).toEqual(["ix:posts:title,likes"]);
  expect(indexes("tags")).toEqual(["ux:tags:name"]);
  expect(() => sqlite.run("INSERT INTO posts (id, likes) VALUES ('b', 'many')")).toThrow("cannot store TEXT");
});

test("[DB40] an index that is no longer declared is dropped", () => {
  migrate(table("posts", [column("title", { unique: true })], { indexes: [{ fields: ["title"], unique: false }] }));
  migrate(table("posts", [column("title")]));
  expect(indexes("posts")).toEqual([]);
});

test("[DB41] a file that already has the declaration is not examined further", () => {
  const posts = table("posts", [column("title")]);
  migrate(posts);
  sqlite.run("DROP TABLE posts");
  migrate(posts);
  expect(values("SELECT name FROM sqlite_master WHERE name = 'posts'")).toEqual([]);
});

test("[DB42] changes that would lose or reinterpret data are refused, and every reason is named", () => {
  migrate(table("posts", [column("title"), column("views", { type: "INTEGER" }), column("gone")]), table("old", []));
  sqlite.run("INSERT INTO posts VALUES ('a', null, 1, 'x'), ('b', null, 2, 'y')");
  sqlite.run("INSERT INTO old VALUES ('a')");
  const problems = problemsOf(
    table("posts", [
      column("title", { notNull: true }),
      column("views", { type: "TEXT" }),
      column("author", { notNull: true }),
    ]),
  );
  expect(problems.map((problem) => problem.slice(0, 70))).toEqual([
    "shared.old: is no longer declared, and its records would be lost; a mi",
    "shared.posts.gone: is no longer declared, and its values would be lost",
    "shared.posts.title: became required and has no default, and 2 records ",
    "shared.posts.views: was integer and is now text; a migration has to co",
    "shared.posts.author: is required and has no default, and there are 2 r",
  ]);
});

test("[DB168] a column that no record has a value in goes without a migration, with its index and uniqueness", () => {
  const unique = column("code", { unique: true });
  migrate(
    table("posts", [column("title"), unique, column("extra")], { indexes: [{ fields: ["extra"], unique: false }] }),
  );
  sqlite.run("INSERT INTO posts (id, title, code, extra) VALUES ('a', 'x', null, null)");
  migrate(table("posts", [column("title")]));
  expect(values("SELECT * FROM posts")).toEqual([["a", "x"]]);
  migrate(table("posts", [column("title"), column("other")]));
  sqlite.run("UPDATE posts SET other = ''");
  expect(problemsOf(table("posts", [column("title")]))).toEqual([expect.stringContaining("posts.other: is no longer")]);
});

test("[DB42] another declared type over the same SQL type is a change of type", () => {
  const flags = (kind: string) => ({
    ...table("posts", [column("flag", { type: "INTEGER" })]),
    columnKinds: { id: "text", flag: kind },
  });
  migrate(flags("boolean"));
  sqlite.run("INSERT INTO posts VALUES ('a', 1)");
  expect(problemsOf(flags("integer"))).toEqual([
    "shared.posts.flag: was boolean and is now integer; a migration has to convert its values",
  ]);
  expect(problemsOf({ ...flags("boolean"), kind: "schemaless" })).toEqual([
    "shared.posts: was declared as declared and is now schemaless; a migration has to convert its records",
  ]);
});

test("[DB42] a column becomes json only with values that are JSON", () => {
  migrate(table("posts", [column("tags")]));
  sqlite.run("INSERT INTO posts VALUES ('a', 'red, blue'), ('b', '[1]'), ('c', NULL)");
  const retyped = (up: string) => ({
    ...table("posts", [column("tags")]),
    columnKinds: { id: "text", tags: "json" },
    migrations: [{ version: 1, description: "tags are JSON", up }],
  });
  expect(problemsOf(retyped("SELECT 1"))).toEqual([
    "shared.posts.tags: 1 records have no valid JSON; a migration has to convert them, as json_quote() does",
  ]);
  expect(problemsOf(retyped("UPDATE posts SET tags = json_quote(tags) WHERE id = 'a'"))).toEqual([]);
});

test("[DB160] a missing column or table is proposed as renamed if a similar one is new", () => {
  const integer = (name: string) => column(name, { type: "INTEGER" });
  migrate(table("posts", [column("title"), integer("views"), column("gone")]), table("old", [column("name")]));
  sqlite.run("INSERT INTO posts VALUES ('a', 'one', 1, 'x')");
  sqlite.run("INSERT INTO old VALUES ('a', 'one')");
  const problems = problemsOf(
    table("posts", [column("headline"), integer("reads")]),
    table("other", [integer("n")]),
    table("fresh", [column("name")]),
  );
  expect(problems).toEqual([
    'shared.old: is no longer declared, and its records would be lost; if fresh is its new name, a migration of fresh can rename it (ALTER TABLE "old" RENAME TO "fresh"), else a migration of another table can drop it (DROP TABLE "old")',
    'shared.posts.title: is no longer declared, and its values would be lost; if headline is its new name, a migration can rename it (ALTER TABLE "posts" RENAME COLUMN "title" TO "headline"), else one can drop it (ALTER TABLE "posts" DROP COLUMN "title")',
    'shared.posts.views: is no longer declared, and its values would be lost; if reads is its new name, a migration can rename it (ALTER TABLE "posts" RENAME COLUMN "views" TO "reads"), else one can drop it (ALTER TABLE "posts" DROP COLUMN "views")',
    'shared.posts.gone: is no longer declared, and its values would be lost; a migration can drop it (ALTER TABLE "posts" DROP COLUMN "gone")',
  ]);
});

test("[DB161] a table without records may be dropped, renamed, and changed in every way", () => {
  migrate(
    table("old", [column("name")], { fts: { fields: ["name"], tokenize: "unicode61" } }),
    table("posts", [column("title", { unique: true }), column("views", { type: "INTEGER" })]),
  );
  sqlite.run("CREATE TRIGGER own AFTER INSERT ON posts BEGIN UPDATE posts SET views = 'x'; END");
  const rename = { version: 1, description: "rename", up: "ALTER TABLE old RENAME TO fresh" };
  const posts = table("posts", [column("views", { notNull: true })], { kind: "schemaless" });
  migrate(table("fresh", [column("name")], { migrations: [rename] }), posts);
  expect(values("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'old%'")).toEqual([]);
  expect(counts()).toEqual({ fresh: 0, posts: 0 });
  expect(indexes("posts")).toEqual([]);
  expect(values("SELECT name FROM sqlite_master WHERE name = 'own'")).toEqual([["own"]]);
  expect(() => sqlite.run("INSERT INTO posts (id) VALUES ('a')")).toThrow("NOT NULL");
});

test("[DB42] a new unique field with duplicates is refused; nulls are not duplicates", () => {
  migrate(table("users", [column("email"), column("team")]));
  sqlite.run("INSERT INTO users VALUES ('a', 'x', null), ('b', 'x', null), ('c', 'y', null)");
  expect(problemsOf(table("users", [column("email", { unique: true }), column("team", { unique: true })]))).toEqual([
    "shared.users.email: is unique now, and 1 values occur more than once",
  ]);
  sqlite.run("UPDATE users SET email = id");
  expect(problemsOf(table("users", [column("email", { unique: true }), column("team")]))).toEqual([]);
});

test("[DB42] a unique field with a default that several records would get is refused, with what to do", () => {
  const sku = (more: Partial<DeclaredColumn> = {}) => column("sku", { unique: true, ...more });
  const required = { notNull: true, default: "none" };
  migrate(table("items", [column("name"), column("code", { unique: true })]));
  sqlite.run("INSERT INTO items VALUES ('a', 'x', null), ('b', 'y', null)");
  const advice = (path: string, field: string) =>
    `shared.items.${path}: is unique, and several records would get the same default of ${field}; declare it without required and default, or give each record a value of its own in a migration`;
  const [name, code] = [column("name"), column("code", { unique: true })];
  expect(problemsOf(table("items", [name, code, sku(required)]))).toEqual([advice("sku", "sku")]);
  expect(problemsOf(table("items", [name, code, sku({ ...required, type: "INTEGER", default: 1 })]))).toEqual([
    advice("sku", "sku"),
  ]);
  // An existing column that becomes required.
  expect(problemsOf(table("items", [name, column("code", { unique: true, ...required })]))).toEqual([
    advice("code", "code"),
  ]);
  // Together with another field, records are duplicates only where the values of that are the same.
  const both = [name, code, column("group", required)];
  const together = { indexes: [{ fields: ["group", "name"], unique: true }] };
  sqlite.run("UPDATE items SET name = 'x'");
  expect(problemsOf(table("items", both, together))).toEqual([advice("group,name", "group")]);
  sqlite.run("UPDATE items SET name = id");
  expect(problemsOf(table("items", both, together))).toEqual([]);
});

test("[DB42] a check or a reference that records break is refused", () => {
  migrate(table("teams", []), table("users", [column("age", { type: "INTEGER" }), column("team")]));
  sqlite.run("INSERT INTO users VALUES ('a', 5, 'nowhere'), ('b', null, null)");
  const age = column("age", { type: "INTEGER", check: `"age" >= 18` });
  expect(problemsOf(table("teams", []), table("users", [age, column("team")]))).toEqual([
    `shared.users.age: 1 records do not pass the check "age" >= 18`,
  ]);
  const team = column("team", { references: { table: "teams", column: "id", onDelete: "CASCADE" } });
  expect(problemsOf(table("teams", []), table("users", [column("age", { type: "INTEGER" }), team]))).toEqual([
    'shared.users.team: 1 records refer to records of teams that do not exist ("nowhere"); a migration has to end that, ' +
      'as with: UPDATE "users" SET "team" = NULL WHERE "team" IS NOT NULL AND "team" NOT IN (SELECT "id" FROM "teams")',
  ]);
});

test("[DB43] a new required column with a default is filled in existing records", () => {
  migrate(table("posts", [column("title")]));
  sqlite.run("INSERT INTO posts VALUES ('a', null), ('b', 'kept')");
  migrate(
    table("posts", [
      column("title", { notNull: true, default: "it's new" }),
      column("n", { type: "INTEGER", notNull: true, default: 7 }),
    ]),
  );
  expect(values("SELECT * FROM posts ORDER BY id")).toEqual([
    ["a", "it's new", 7],
    ["b", "kept", 7],
  ]);
  expect(() => sqlite.run("INSERT INTO posts (id, title) VALUES ('c', null)")).toThrow("NOT NULL");
});

test("[DB43] a new optional column is null in existing records, whatever its default", () => {
  migrate(table("posts", []));
  sqlite.run("INSERT INTO posts VALUES ('a')");
  migrate(table("posts", [column("title", { default: "untitled" })]));
  expect(values("SELECT * FROM posts")).toEqual([["a", null]]);
});

test("[DB44] a changed constraint moves the rows: rowids, references and foreign triggers stay", () => {
  const comments = table("comments", [
    column("post", { references: { table: "posts", column: "id", onDelete: "CASCADE" } }),
  ]);
  const fts = { fields: ["title"], tokenize: "unicode61" as const };
  migrate(table("posts", [column("title")], { fts }), comments);
  sqlite.run("INSERT INTO posts (rowid, id, title) VALUES (7, 'a', 'seven words'), (3, 'b', 'three words')");
  sqlite.run("INSERT INTO comments VALUES ('c', 'a')");
  sqlite.run("CREATE TRIGGER own AFTER DELETE ON posts BEGIN INSERT INTO comments VALUES (old.id, null); END");
  migrate(table("posts", [column("title", { notNull: true, check: `length("title") > 3` })], { fts }), comments);
  expect(values("SELECT rowid, id FROM posts ORDER BY rowid")).toEqual([
    [3, "b"],
    [7, "a"],
  ]);
  expect(values("SELECT rowid FROM posts_fts WHERE posts_fts MATCH 'seven'")).toEqual([[7]]);
  expect(() => sqlite.run("INSERT INTO posts VALUES ('x', 'abc')")).toThrow("CHECK");
  expect(() => sqlite.run("INSERT INTO comments VALUES ('d', 'nowhere')")).toThrow("FOREIGN KEY");
  sqlite.run("DELETE FROM posts WHERE id = 'a'");
  expect(values("SELECT * FROM comments")).toEqual([["a", null]]);
  expect(values("SELECT rowid FROM posts_fts WHERE posts_fts MATCH 'seven'")).toEqual([]);
  sqlite.run("INSERT INTO posts_fts (posts_fts) VALUES ('integrity-check')");
});

test("[DB45] migrations run once each, in order of version over all tables, before the comparison", () => {
  migrate(table("posts", [column("name"), column("views")]), table("log", [column("what")]));
  sqlite.run("INSERT INTO posts VALUES ('a', 'Title', '12')");
  const posts = table("posts", [column("title"), column("views", { type: "INTEGER" })], {
    migrations: [
      {
        version: 1,
        description: "rename",
        up: "ALTER TABLE posts RENAME COLUMN name TO title; INSERT INTO log VALUES ('1', 'one')",
      },
      {
        version: 3,
        description: "trim",
        up: "UPDATE posts SET views = trim(views); INSERT INTO log VALUES ('3', 'three')",
      },
    ],
  });
  const log = table("log", [column("what")], {
    migrations: [{ version: 2, description: "note", up: "INSERT INTO log VALUES ('2', 'two')" }],
  });
  migrate(posts, log);
  migrate(posts, { ...log, indexes: [{ fields: ["what"], unique: false }] });
  expect(values("SELECT * FROM posts")).toEqual([["a", "Title", 12]]);
  expect(values("SELECT what FROM log ORDER BY rowid").flat()).toEqual(["one", "two", "three"]);
  expect(counts()).toEqual({ log: 3, posts: 1 });
});

test("[DB45] a migration may drop columns, with everything that depends on them, and tables that are no longer declared", () => {
  const fts = { fields: ["title", "extra"], tokenize: "trigram" as const };
  migrate(
    table("users", []),
    table(
      "posts",
      [
        column("title"),
        column("extra", { unique: true }),
        column("author", { references: { table: "users", column: "id", onDelete: "RESTRICT" } }),
      ],
      { fts },
    ),
    table("old", [], { fts: { fields: ["id"], tokenize: "porter" } }),
  );
  sqlite.run("INSERT INTO posts VALUES ('a', 'some title', 'x', null)");
  migrate(
    table("users", []),
    table("posts", [column("title")], {
      fts: { fields: ["title"], tokenize: "trigram" },
      migrations: [
        {
          version: 1,
          description: "less",
          up: "ALTER TABLE posts DROP COLUMN extra; ALTER TABLE posts DROP COLUMN author; DROP TABLE old",
        },
      ],
    }),
  );
  expect(values("SELECT * FROM posts")).toEqual([["a", "some title"]]);
  expect(values("SELECT rowid FROM posts_fts WHERE posts_fts MATCH 'itl'")).toEqual([[1]]);
  expect(values("SELECT name FROM sqlite_master WHERE name LIKE 'old%'")).toEqual([]);
});

test("[DB45] a table may be renamed", () => {
  migrate(table("posts", [column("title")], { fts: { fields: ["title"], tokenize: "unicode61" } }));
  sqlite.run("INSERT INTO posts VALUES ('a', 'words')");
  const articles = table("articles", [column("title")], {
    fts: { fields: ["title"], tokenize: "unicode61" },
    migrations: [{ version: 1, description: "rename", up: "ALTER TABLE posts RENAME TO articles" }],
  });
  migrate(articles);
  expect(
    values("SELECT id FROM articles WHERE rowid IN (SELECT rowid FROM articles_fts WHERE articles_fts MATCH 'words')"),
  ).toEqual([["a"]]);
  expect(values("SELECT name FROM sqlite_master WHERE name LIKE 'posts%'")).toEqual([]);
  expect(counts()["articles"]).toBe(1);
});

test.each([
  ['ALTER TABLE "posts" RENAME COLUMN "title" TO "headline"', []],
  [" alter table Posts\n rename [TITLE] to `Headline` ; ", []],
  ["ALTER TABLE posts DROP COLUMN title; DROP TABLE old;", []],
  ["ALTER TABLE old RENAME TO posts", []],
  ["ALTER TABLE posts RENAME title TO other", [expect.stringContaining('no such column: "title"')]],
  ["ALTER TABLE posts RENAME headline TO id", [expect.stringContaining("duplicate column name")]],
  ["ALTER TABLE gone DROP title", [expect.stringContaining("no such table: gone")]],
  ["ALTER TABLE old RENAME TO other", [expect.stringContaining("no such table: old")]],
  ["DROP TABLE old; UPDATE posts SET headline = 1", [expect.stringContaining("no such table: old")]],
])("[DB45] a rename or a drop that the file has already is recorded and not run: %s", (up, problems) => {
  const renamed = table("posts", [column("headline")], { fts: { fields: ["headline"], tokenize: "unicode61" } });
  migrate(renamed);
  sqlite.run("INSERT INTO posts VALUES ('a', 'words')");
  expect(problemsOf({ ...renamed, migrations: [{ version: 1, description: "rename", up }] })).toEqual(problems);
  expect(values("SELECT * FROM posts")).toEqual([["a", "words"]]);
  expect(values("SELECT rowid FROM posts_fts WHERE posts_fts MATCH 'words'")).toEqual([[1]]);
  expect(values("SELECT version FROM _platform_migrations")).toEqual(problems.length === 0 ? [[1]] : []);
});

test("[DB45] a drop that names no column leaves the one that is no longer declared", () => {
  migrate(table("posts", [column("title"), column("body")]));
  sqlite.run("INSERT INTO posts VALUES ('a', 'words', 'more')");
  const migrations = [{ version: 1, description: "drop", up: "ALTER TABLE posts DROP COLUMN boddy" }];
  expect(problemsOf(table("posts", [column("title")], { migrations }))).toEqual([
    expect.stringContaining("shared.posts.body: is no longer declared"),
  ]);
});

test("[DB46] a new table has nothing to migrate: its migrations are recorded and not run", () => {
  const posts = table("posts", [column("title")], {
    migrations: [{ version: 1, description: "fill", up: "INSERT INTO posts VALUES ('made', 'by a migration')" }],
  });
  migrate(posts);
  expect(values("SELECT * FROM posts")).toEqual([]);
  migrate({ ...posts, indexes: [{ fields: ["title"], unique: false }] });
  expect(values("SELECT * FROM posts")).toEqual([]);
  const later = { version: 2, description: "now", up: "INSERT INTO posts VALUES ('made', 'later')" };
  migrate({ ...posts, migrations: [...posts.migrations, later] });
  expect(values("SELECT * FROM posts")).toEqual([["made", "later"]]);
});

test("[DB47] a migration that fails is named and leaves the file as it was, with those before it", () => {
  migrate(table("posts", [column("title")]));
  sqlite.run("INSERT INTO posts VALUES ('a', 'kept')");
  const migrations = [
    { version: 1, description: "empty", up: "DELETE FROM posts" },
    { version: 2, description: "broken", up: "ALTER TABLE nowhere ADD COLUMN x" },
  ];
  const [problem] = problemsOf(table("posts", [column("title")], { migrations }));
  expect(problem).toContain("Migration 2 of shared.posts (broken) failed: no such table: nowhere");
  expect(values("SELECT * FROM posts")).toEqual([["a", "kept"]]);
});

for (const [how, up] of [
  ["ends", "UPDATE posts SET title = 'changed', n = n + 100; COMMIT"],
  [
    "ends, begins anew and fails",
    "UPDATE posts SET title = 'changed', n = n + 100; COMMIT; BEGIN; SELECT nope FROM posts",
  ],
] as const) {
  test(`[DB56] after a migration that ${how} the transaction, the next start repairs the file`, () => {
    const posts = table("posts", [column("title", { unique: true }), column("n", { type: "INTEGER" })], {
      fts: { fields: ["title"], tokenize: "unicode61" },
      indexes: [{ fields: ["n"], unique: false }],
    });
    migrate(posts);
    sqlite.run("INSERT INTO posts VALUES ('a', 'words', 1)");
    const found = indexes("posts");
    const failing = { ...posts, migrations: [{ version: 1, description: "bad", up }] };
    expect(() => migrate(failing)).toThrow("Migration 1 of shared.posts (bad)");
    expect(values("PRAGMA foreign_keys")).toEqual([[1]]);
    migrate(posts);
    expect(indexes("posts")).toEqual(found);
    expect(() => sqlite.run("INSERT INTO posts VALUES ('b', 'changed', 1)")).toThrow("UNIQUE");
    sqlite.run("INSERT INTO posts VALUES ('b', 'brand new', 1)");
    expect(values("SELECT rowid FROM posts_fts WHERE posts_fts MATCH 'changed OR new' ORDER BY 1")).toEqual([[1], [2]]);
    expect(counts()["posts"]).toBe(1);
  });
}

test("[DB47] a migration that leaves values of another type than declared is refused", () => {
  migrate(table("posts", [column("views")]));
  sqlite.run("INSERT INTO posts VALUES ('a', 'many')");
  const migrations = [{ version: 1, description: "nothing", up: "SELECT 1" }];
  const [problem] = problemsOf(table("posts", [column("views", { type: "INTEGER" })], { migrations }));
  expect(problem).toContain("shared.posts: cannot store TEXT value in INTEGER column");
});

test("[DB48] the full-text index follows the table, and is rebuilt when its configuration changes", () => {
  const search = (words: string) => values(`SELECT rowid FROM posts_fts WHERE posts_fts MATCH '${words}'`).flat();
  const columns = [column("title"), column("body")];
  migrate(table("posts", columns));
  sqlite.run("INSERT INTO posts VALUES ('a', 'running water', 'x'), ('b', null, 'still running')");
  migrate(table("posts", columns, { fts: { fields: ["title"], tokenize: "unicode61" } }));
  expect(search("running")).toEqual([1]);
  expect(search("run*")).toEqual([1]);
  sqlite.run("UPDATE posts SET title = 'standing' WHERE id = 'a'");
  sqlite.run("UPDATE posts SET title = 'running' WHERE id = 'b'");
  expect(search("running")).toEqual([2]);
  migrate(table("posts", columns, { fts: { fields: ["title", "body"], tokenize: "porter" } }));
  expect(search("run")).toEqual([2]);
  sqlite.run("DELETE FROM posts WHERE id = 'b'");
  expect(search("run")).toEqual([]);
  migrate(table("posts", columns));
  expect(values("SELECT name FROM sqlite_master WHERE name LIKE 'posts_fts%'")).toEqual([]);
  sqlite.run("INSERT INTO posts VALUES ('c', 'goes on', null)");
});

test("[DB48] an index of an earlier version is made anew, with every record", () => {
  const posts = table("posts", [column("title")], { fts: { fields: ["title"], tokenize: "unicode61" } });
  migrate(posts);
  sqlite.run("INSERT INTO posts VALUES ('a', 'में'), ('b', 'मैं'), ('c', 'café ❤\ufe0fred')");
  const search = (word: string) => values(`SELECT rowid FROM posts_fts WHERE posts_fts MATCH '"${word}"'`).flat();
  const right = [
    ["में", [1]],
    ["मैं", [2]],
    ["cafe", [3]],
    ["red", [3]],
  ] as const;
  for (const [word, found] of right) expect([word, search(word)]).toEqual([word, [...found]]);
  // Created as version 0.2 did.
  sqlite.run("DROP TABLE posts_fts");
  sqlite.run(
    "CREATE VIRTUAL TABLE \"posts_fts\" USING fts5(\"title\", content='', contentless_delete=1, tokenize='unicode61', prefix='2 3')",
  );
  sqlite.run("INSERT INTO posts_fts (rowid, title) SELECT rowid, title FROM posts");
  sqlite.run("UPDATE _platform_meta SET value = 'of 0.2' WHERE name = 'declared_hash'");
  expect(search("में")).toEqual([1, 2]);
  migrate(posts);
  for (const [word, found] of right) expect([word, search(word)]).toEqual([word, [...found]]);
});

test("[DB48] an update of another column leaves the index alone", () => {
  migrate(
    table("posts", [column("title"), column("n", { type: "INTEGER" })], {
      fts: { fields: ["title"], tokenize: "unicode61" },
    }),
  );
  sqlite.run("INSERT INTO posts VALUES ('a', 'words', 1)");
  const before = sqlite.query<{ n: number }, []>("SELECT total_changes() AS n").get()?.n ?? 0;
  sqlite.run("UPDATE posts SET n = 2, title = title");
  expect((sqlite.query<{ n: number }, []>("SELECT total_changes() AS n").get()?.n ?? 0) - before).toBe(1);
});

test("[DB49] the rows of a table are counted when it is first declared", () => {
  sqlite.run("CREATE TABLE posts (id TEXT PRIMARY KEY NOT NULL, title TEXT) STRICT");
  sqlite.run("INSERT INTO posts VALUES ('a', null), ('b', null)");
  migrate(table("posts", [column("title")]));
  expect(counts()).toEqual({ posts: 2 });
});
