import { describe, expect, test } from "bun:test";
import library from "web-push";
import type { JsonObject } from "../../kernel/json/json.ts";
import { checkConfig, checkedConfig } from "./check.ts";
import { configWarnings } from "./loading/warnings.ts";
import { ConfigError } from "./problems.ts";
import type { Lookup } from "./types.ts";

/** Returns `path: message` of every problem. */
function problemsOf(config: unknown): string[] {
  const checked = checkConfig(config);
  return "problems" in checked ? checked.problems.map(({ path, message }) => `${path}: ${message}`) : [];
}

const table = (declared: unknown) => ({ databases: { shared: { tables: { posts: declared } } } });
const schema = (fields: unknown) => table({ schema: fields });
const field = (declared: unknown) => schema({ title: declared });
const POSTS = "databases.shared.tables.posts";
const TITLE = `${POSTS}.schema.title`;
const vapidKeys = library.generateVAPIDKeys();

const NS = "databases.shared";
/** Two tables, where a film has any number of ratings, and a view of them. */
const view = (declared: unknown, name = "top", tables: Record<string, unknown> = {}) => ({
  databases: {
    shared: {
      tables: {
        films: { schema: { title: { type: "string", required: true }, genre: { type: "string" } } },
        ratings: { schema: { filmId: { references: "films" }, stars: { type: "integer", required: true } } },
        notes: {},
        ...tables,
      },
      views: { [name]: declared },
    },
  },
});
const sql = (text: string, schema: unknown = {}) => view({ sql: text, schema });
const GROUPED = "SELECT f.id, avg(r.stars) AS stars FROM films f LEFT JOIN ratings r ON r.filmId = f.id GROUP BY f.id";

/** A namespace and one with instances; the field `ref` is in a table of the one named. */
const far = (ref: unknown, inside = "boards", tables: Record<string, unknown> = {}) => ({
  databases: {
    shared: {
      tables: {
        people: { schema: { name: { type: "string", unique: true }, ...(inside === "shared" ? { ref } : {}) } },
      },
    },
    boards: {
      instance: true,
      tables: { tasks: { schema: { title: { type: "string" }, ...(inside === "boards" ? { ref } : {}) } }, ...tables },
    },
  },
});
const FAR = "databases.boards.tables.tasks.schema.ref";

/** [rule, what, config, path, words of the message] */
const CASES: [rule: string, what: string, config: unknown, path: string, words: string][] = [
  ["[CF1]", "no object", 5, "", "must be an object, got 5"],
  ["[CF393]", "too many workers", { server: { workers: 17 } }, "server.workers", "from 0 to 16"],
  ["[CF393]", "workers by another word", { server: { workers: "some" } }, "server.workers", '"auto"'],
  ["[CF1]", "a list for a map", { databases: [] }, "databases", "must be an object, got a list"],
  ["[CF1]", "a class instance", { databases: new Map() }, "databases", "an instance of Map"],
  ["[CF1]", "a namespace without tables", { databases: { a: {} } }, "databases.a.tables", "is required"],
  ["[CF1]", "undefined as a declaration", { kv: { a: undefined } }, "kv.a", "is undefined"],
  [
    "[CF13]",
    "too much concurrency",
    { jobs: { a: { run() {}, concurrency: 101 } } },
    "jobs.a.concurrency",
    "from 1 to 100",
  ],
  [
    "[AU440]",
    "an issuer that takes tokens for every application",
    { auth: { issuers: [{ name: "auth0", issuer: "https://issuer.example.com/" }] } },
    "auth.issuers.0",
    "needs audience or authorizedParties",
  ],
  [
    "[AU440]",
    "an issuer whose keys can be replaced on the way",
    { auth: { issuers: [{ name: "auth0", issuer: "http://issuer.example.com/", audience: "app" }] } },
    "auth.issuers.0.issuer",
    "must begin with https:",
  ],
  [
    "[AU440]",
    "an issuer that is this server",
    {
      auth: {
        tokens: { audience: "a", issuer: "https://own.example.com" },
        issuers: [{ name: "own", issuer: "https://own.example.com", audience: "app" }],
      },
    },
    "auth.issuers.0.issuer",
    "is there already",
  ],
  [
    "[AU420]",
    "a phone as second factor without texts",
    { auth: { mfa: { phone: true } } },
    "auth.mfa.phone",
    "needs auth.phones",
  ],
  [
    "[CF1]",
    "mails in no language",
    {
      auth: {
        mail: {
          templates: { invite: { subject: "a", text: "b", languages: { german_: { subject: "a", text: "b" } } } },
        },
      },
    },
    "auth.mail.templates.invite.languages.german_",
    "must be a language tag such as de or de-AT",
  ],
  ["[CF1]", "a job without run", { jobs: { a: {} } }, "jobs.a.run", "is required"],
  ["[CF1]", "a schema that is a list", { jobs: { a: { run() {}, data: [] } } }, "jobs.a.data", "must be a schema"],
  ["[CF19]", "six fields", { cron: { a: { run() {}, schedule: "0 0 3 * * *" } } }, "cron.a.schedule", "five fields"],
  ["[CF19]", "never", { cron: { a: { run() {}, schedule: "0 0 30 2 *" } } }, "cron.a.schedule", "occurs at some time"],
  [
    "[CF19]",
    "a time zone on Mars",
    { cron: { a: { run() {}, schedule: "@daily", timezone: "Mars/Base" } } },
    "cron.a.timezone",
    "must be a time zone such as Europe/Berlin",
  ],
  [
    "[CF351]",
    "a view with the name of a table",
    view({ sql: "SELECT id FROM films", schema: {} }, "Films"),
    `${NS}.views.Films`,
    "has the name of the table films",
  ],
  ["[CF351]", "a view without SQL", view({ schema: {} }), `${NS}.views.top.sql`, "is required"],
  [
    "[CF351]",
    "a rule of writes",
    view({ sql: "SELECT id FROM films", schema: {}, access: { insert: true } }),
    `${NS}.views.top.access.insert`,
    "the options are read",
  ],
  [
    "[CF351]",
    "id in the schema",
    sql("SELECT id FROM films", { id: { type: "string" } }),
    `${NS}.views.top.schema.id`,
    "is always there",
  ],
  [
    "[CF351]",
    "a member about writes",
    sql("SELECT id, title FROM films", { title: { type: "string", unique: true } }),
    `${NS}.views.top.schema.title.unique`,
    "is not for a field of a view",
  ],
  [
    "[CF351]",
    "a place",
    sql("SELECT id, title FROM films", { title: { type: "geo" } }),
    `${NS}.views.top.schema.title.type`,
    "cannot be geo in a view",
  ],
  [
    "[CF351]",
    "a reference to nothing",
    sql("SELECT id, title FROM films", { title: { references: "film" } }),
    `${NS}.views.top.schema.title.references`,
    '"film" is not a table',
  ],
  [
    "[CF351]",
    "live that is no table",
    view({ sql: "SELECT id FROM films", schema: {}, live: ["films", "top"] }),
    `${NS}.views.top.live.1`,
    '"top" is not a table',
  ],
  [
    "[CF351]",
    "live twice",
    view({ sql: "SELECT id FROM films", schema: {}, live: ["films", "films"] }),
    `${NS}.views.top.live.1`,
    "listed twice",
  ],
  ["[CF352]", "no id", sql("SELECT title FROM films"), `${NS}.views.top.sql`, "gives no id; it gives title"],
  [
    "[CF352]",
    "a field that is not given",
    sql("SELECT id, title FROM films", { genre: { type: "string" } }),
    `${NS}.views.top.sql`,
    "gives no genre, a field of its schema; it gives id, title",
  ],
  [
    "[CF352]",
    "id twice among the columns",
    sql("SELECT * FROM films JOIN ratings ON filmId = films.id"),
    `${NS}.views.top.sql`,
    "gives id 2 times",
  ],
  [
    "[CF352]",
    "a column that is gone",
    sql("SELECT id, year FROM films"),
    `${NS}.views.top.sql`,
    "no such column: year",
  ],
  [
    "[CF352]",
    "a table of another namespace",
    sql("SELECT id FROM posts"),
    `${NS}.views.top.sql`,
    "no such table: posts",
  ],
  ["[CF352]", "itself", sql("SELECT id FROM top"), `${NS}.views.top.sql`, "no such table: top"],
  [
    "[CF352]",
    "a table of SQLite",
    sql("SELECT name AS id FROM sqlite_master"),
    `${NS}.views.top.sql`,
    "sees declared tables only, not sqlite_master",
  ],
  [
    "[CF352]",
    "a table of the server",
    sql('SELECT "key" AS id FROM "_platform_meta"'),
    `${NS}.views.top.sql`,
    "no such table: _platform_meta",
  ],
  [
    "[CF352]",
    "an index of texts",
    { ...view({ sql: "SELECT rowid || '' AS id FROM films_fts", schema: {} }) },
    `${NS}.views.top.sql`,
    "no such table: films_fts",
  ],
  [
    "[CF352]",
    "a pragma",
    sql("SELECT name AS id FROM pragma_table_info('films')"),
    `${NS}.views.top.sql`,
    "sees declared tables only, not pragma_table_info",
  ],
  [
    "[CF352]",
    "the row id",
    sql("SELECT id || rowid AS id FROM films"),
    `${NS}.views.top.sql`,
    "cannot use the row id of films",
  ],
  [
    "[CF352]",
    "a column of the server",
    sql("SELECT id, _platform_document FROM notes"),
    `${NS}.views.top.sql`,
    "no such column: _platform_document",
  ],
  [
    "[CF352]",
    "a schema before a table",
    sql('SELECT id FROM "MAIN" . films'),
    `${NS}.views.top.sql`,
    "must name tables alone, without main.",
  ],
  ["[CF352]", "a write", sql("DELETE FROM films"), `${NS}.views.top.sql`, "must be one SELECT"],
  [
    "[CF352]",
    "a write that gives rows",
    sql("DELETE FROM films RETURNING id"),
    `${NS}.views.top.sql`,
    "must be one SELECT",
  ],
  ["[CF352]", "a pragma statement", sql("PRAGMA table_list"), `${NS}.views.top.sql`, "sees declared tables only"],
  ["[CF352]", "two statements", sql("SELECT id FROM films; SELECT 1"), `${NS}.views.top.sql`, "without a semicolon"],
  [
    "[CF352]",
    "a parenthesis that ends it",
    sql("SELECT id FROM films) SELECT * FROM (SELECT id FROM films"),
    `${NS}.views.top.sql`,
    "is not valid",
  ],
  [
    "[CF352]",
    "a parameter",
    sql("SELECT id FROM films WHERE title = ?"),
    `${NS}.views.top.sql`,
    "must have no parameters",
  ],
  [
    "[CF352]",
    "an extension",
    sql("SELECT load_extension('x') AS id FROM films"),
    `${NS}.views.top.sql`,
    "cannot call load_extension",
  ],
  [
    "[CF353]",
    "an id for each rating",
    sql("SELECT f.id FROM films f JOIN ratings r ON r.filmId = f.id"),
    `${NS}.views.top.sql`,
    "must give each id once",
  ],
  [
    "[CF353]",
    "an id that is not unique",
    sql("SELECT title AS id FROM films"),
    `${NS}.views.top.sql`,
    "must give each id once",
  ],
  [
    "[CF353]",
    "an id that may be null",
    sql("SELECT genre AS id FROM films GROUP BY genre"),
    `${NS}.views.top.sql`,
    "must give a text as id, and gives null",
  ],
  [
    "[CF353]",
    "a number as id",
    sql("SELECT stars AS id FROM ratings GROUP BY stars"),
    `${NS}.views.top.sql`,
    "must give a text as id, and gives number",
  ],
  [
    "[CF353]",
    "null as a required field",
    sql(GROUPED, { stars: { type: "number", required: true } }),
    `${NS}.views.top.sql`,
    "gives null as stars for some records",
  ],
  [
    "[CF353]",
    "text as a number",
    sql("SELECT id, title FROM films", { title: { type: "number" } }),
    `${NS}.views.top.sql`,
    "gives text as title, which is of type number",
  ],
  [
    "[CF353]",
    "a fraction as an integer",
    sql("SELECT id, 0.5 AS half FROM films", { half: { type: "integer" } }),
    `${NS}.views.top.sql`,
    "gives 0.5 as half",
  ],
  [
    "[CF353]",
    "a number as a boolean",
    sql("SELECT id, 2 AS two FROM films", { two: { type: "boolean" } }),
    `${NS}.views.top.sql`,
    "gives 2 as two",
  ],
  [
    "[CF354]",
    "a schema of a text",
    field({ type: "string", schema: { type: "string" } }),
    `${TITLE}.schema`,
    "is for json, not for string",
  ],
  [
    "[CF354]",
    "a schema that is none",
    field({ type: "json", schema: [] }),
    `${TITLE}.schema`,
    "must be a schema such as t.Object",
  ],
  [
    "[CF354]",
    "values that JSON does not have",
    field({ type: "json", schema: { type: "object", properties: { a: { type: "Date" } } } }),
    `${TITLE}.schema`,
    'has the type "Date"',
  ],
  [
    "[CF354]",
    "a tuple",
    field({ type: "json", schema: { type: "array", items: [{ type: "number" }] } }),
    `${TITLE}.schema`,
    "is a tuple",
  ],
  [
    "[CF354]",
    "a default that does not match",
    field({ type: "json", default: { a: "x" }, schema: { type: "object", properties: { a: { type: "number" } } } }),
    `${TITLE}.default`,
    "must match the field's schema: default.a must be a number",
  ],
  ["[CF2]", "unknown at the top", { databses: {} }, "databses", 'did you mean "databases"?'],
  [
    "[CF2]",
    "unknown in a field",
    field({ type: "string", requird: true }),
    `${TITLE}.requird`,
    'did you mean "required"?',
  ],
  ["[CF390]", "agents as a text", { mcp: "yes" }, "mcp", "true or false"],
  [
    "[CF391]",
    "an unknown action of agents",
    { serviceKeys: { k: { key: "sssssssssssssssssssssss", scopes: ["mcp:*:*:call"] } } },
    "serviceKeys.k.scopes.0",
    '"call" is not an action of mcp: read, write',
  ],
  [
    "[CF392]",
    "a limit of agents",
    { rateLimits: { mcp: { requests: 0, window: 60 } } },
    "rateLimits.mcp.requests",
    "1 or more",
  ],
  [
    "[TB950]",
    "vectors of a number",
    table({ schema: { n: { type: "integer" } }, embed: { fields: ["n"], with: () => [] } }),
    "databases.shared.tables.posts.embed.fields.0",
    "must be a string or text field, n is integer",
  ],
  [
    "[TB950]",
    "vectors of a field that is not declared",
    table({ schema: { n: { type: "text" } }, embed: { fields: ["m"], with: () => [] } }),
    "databases.shared.tables.posts.embed.fields.0",
    "is not a declared field",
  ],
  [
    "[TB950]",
    "vectors without a schema",
    table({ embed: { fields: ["m"], with: () => [] } }),
    "databases.shared.tables.posts.embed",
    "needs a schema",
  ],
  [
    "[TB950]",
    "vectors without a function",
    table({ schema: { n: { type: "text" } }, embed: { fields: ["n"], with: "model" } }),
    "databases.shared.tables.posts.embed.with",
    "a function",
  ],
  [
    "[TB954]",
    "too many texts at once",
    table({ schema: { n: { type: "text" } }, embed: { fields: ["n"], with: () => [], batch: 129 } }),
    "databases.shared.tables.posts.embed.batch",
    "128",
  ],
  ["[CF2]", "unknown in kv", { kv: { a: { ttl: 5 } } }, "kv.a.ttl", "nothing can be configured"],
  ["[CF2]", "unknown without a near name", { api: { zzzz: 1 } }, "api.zzzz", "the options are schemaEndpoint, docs"],
  [
    "[CF2]",
    "constructor as a member",
    { api: JSON.parse('{"constructor":1}') },
    "api.constructor",
    "is not an option here",
  ],
  ["[CF3]", "a namespace with a dot", { databases: { "a.b": { tables: {} } } }, "databases.a.b", "must be a name"],
  [
    "[CF3]",
    "a table with a hyphen",
    { databases: { a: { tables: { "b-c": {} } } } },
    "databases.a.tables.b-c",
    "digits and _",
  ],
  ["[CF3]", "a digit first", { d1: { "1a": {} } }, "d1.1a", "must be a name"],
  [
    "[CF3]",
    "a long name",
    { kv: { ["x".repeat(65)]: {} } },
    `kv.${"x".repeat(65)}`,
    "at most 64 characters long, got 65",
  ],
  [
    "[CF302]",
    "a quota without instances",
    { databases: { a: { quota: { perInstance: 65_536 }, tables: {} } } },
    "databases.a.quota",
    "instance: true",
  ],
  [
    "[CF302]",
    "an empty quota",
    { databases: { a: { instance: true, quota: {}, tables: {} } } },
    "databases.a.quota",
    "must have perInstance or instancesPerUser",
  ],
  [
    "[CF302]",
    "a quota that no instance keeps",
    { databases: { a: { instance: true, quota: { perInstance: 4096 }, tables: {} } } },
    "databases.a.quota.perInstance",
    "65536 or more",
  ],
  ["[CF3]", "an empty name", { kv: { "": {} } }, "kv.", "must be a name"],
  ["[CF4]", "_platform", schema({ _platform_x: { type: "json" } }), `${POSTS}.schema._platform_x`, "reserved"],
  ["[CF4]", "sqlite_", { databases: { a: { tables: { SQLITE_x: {} } } } }, "databases.a.tables.SQLITE_x", "reserved"],
  ["[CF4]", "_fts", { databases: { a: { tables: { posts_fts: {} } } } }, "databases.a.tables.posts_fts", "_fts"],
  [
    "[CF4]",
    "_fts_data",
    { databases: { a: { tables: { posts_fts_data: {} } } } },
    "databases.a.tables.posts_fts_data",
    "_fts",
  ],
  ...["json_each", "JSON_TREE", "pragma_table_info", "dbstat", "fts5vocab"].map(
    (name): [string, string, unknown, string, string] => [
      "[CF4]",
      name,
      { databases: { a: { tables: { [name]: {} } } } },
      `databases.a.tables.${name}`,
      "SQLite has built in",
    ],
  ),
  ["[CF4]", "rowid", schema({ RowId: { type: "json" } }), `${POSTS}.schema.RowId`, "name of the row id"],
  ["[CF4]", "__proto__", JSON.parse('{"kv":{"__proto__":{}}}'), "kv.__proto__", "JavaScript objects"],
  [
    "[CF4]",
    "constructor",
    { storage: { buckets: { constructor: {} } } },
    "storage.buckets.constructor",
    "JavaScript objects",
  ],
  ["[CF4]", "a field toString", schema({ toString: { type: "string" } }), `${POSTS}.schema.toString`, "JavaScript"],
  [
    "[CF4]",
    "an action __proto__",
    JSON.parse('{"rooms":{"r":{"actions":{"__proto__":1}}}}'),
    "rooms.r.actions.__proto__",
    "handler",
  ],
  ["[CF5]", "two tables", { databases: { a: { tables: { x: {}, X: {} } } } }, "databases.a.tables.X", "only in case"],
  ["[CF5]", "two fields", schema({ ab: { type: "json" }, aB: { type: "json" } }), `${POSTS}.schema.aB`, "only in case"],
  ["[CF5]", "two databases", { d1: { a: {}, A: {} } }, "d1.A", "differs from a only in case"],
  ["[CF6]", "id", schema({ id: { type: "string" } }), `${POSTS}.schema.id`, "is created automatically"],
  ["[CF6]", "id false", schema({ id: false }), `${POSTS}.schema.id`, "is created automatically"],
  ["[CF6]", "createdAt", schema({ createdAt: { type: "datetime" } }), `${POSTS}.schema.createdAt`, "set it to false"],
  ["[CF6]", "another field false", schema({ title: false }), TITLE, "must be an object, got false"],
  ["[CF6]", "ID", schema({ ID: { type: "string" } }), `${POSTS}.schema.ID`, "differs from id only in case"],
  ["[CF7]", "no type", field({}), `${TITLE}.type`, "is required"],
  ["[CF7]", "no type, with a default", field({ default: 1 }), `${TITLE}.type`, "is required"],
  [
    "[CF7]",
    "an unknown type",
    field({ type: "strng" }),
    `${TITLE}.type`,
    'must be one of string, text, number, integer, boolean, date, datetime, geo, json, references, file, got "strng" (did you mean "string"?)',
  ],
  [
    "[CF7]",
    "min over max",
    field({ type: "string", min: 5, max: 2 }),
    `${TITLE}.min`,
    "must not be above max, got 5 and 2",
  ],
  ["[CF7]", "a negative length", field({ type: "text", min: -1 }), `${TITLE}.min`, "counts characters"],
  ["[CF7]", "a bound of a boolean", field({ type: "boolean", max: 1 }), `${TITLE}.max`, "not for boolean"],
  [
    "[CF7]",
    "a bound that is no number",
    field({ type: "number", max: Number.NaN }),
    `${TITLE}.max`,
    "must be a number, got NaN",
  ],
  [
    "[CF7]",
    "a broken pattern",
    field({ type: "string", pattern: "(" }),
    `${TITLE}.pattern`,
    "is not a regular expression",
  ],
  ["[CF7]", "a pattern of a number", field({ type: "number", pattern: "a" }), `${TITLE}.pattern`, "not for number"],
  ["[CF7]", "an empty enum", field({ type: "string", enum: [] }), `${TITLE}.enum`, "must not be empty"],
  [
    "[CF7]",
    "an enum of another type",
    field({ type: "string", enum: ["a", 1] }),
    `${TITLE}.enum.1`,
    "must be a string",
  ],
  ["[CF7]", "an enum of fractions", field({ type: "integer", enum: [1.5] }), `${TITLE}.enum.0`, "whole number"],
  ["[CF7]", "an enum twice", field({ type: "string", enum: ["a", "a"] }), `${TITLE}.enum.1`, "is listed twice"],
  ["[CF7]", "an enum of json", field({ type: "json", enum: ["a"] }), `${TITLE}.enum`, "not for json"],
  [
    "[CF7]",
    "validate of nothing",
    field({ type: "text", validate: "new" }),
    `${TITLE}.validate`,
    "is for fields with enum",
  ],
  [
    "[CF7]",
    "validate otherwise",
    field({ type: "text", max: 3, validate: "all" }),
    `${TITLE}.validate`,
    'must be "new", got "all"',
  ],
  ["[CF335]", "a unique point", field({ type: "geo", unique: true }), `${TITLE}.unique`, "is not for geo"],
  ["[CF335]", "a pattern of points", field({ type: "geo", pattern: "x" }), `${TITLE}.pattern`, "not for geo"],
  [
    "[CF335]",
    "a default that is no point",
    field({ type: "geo", default: { lat: 91, lng: 0 } }),
    `${TITLE}.default`,
    "must be a point such as",
  ],
  [
    "[CF335]",
    "an index of points",
    {
      databases: { shared: { tables: { posts: { schema: { at: { type: "geo" } }, indexes: [{ fields: ["at"] }] } } } },
    },
    "databases.shared.tables.posts.indexes.0.fields.0",
    "has an index of its own",
  ],
  ["[CF7]", "onUpdate of text", field({ type: "text", onUpdate: "now" }), `${TITLE}.onUpdate`, "is for datetime"],
  [
    "[CF7]",
    "onUpdate later",
    field({ type: "datetime", onUpdate: "later" }),
    `${TITLE}.onUpdate`,
    'must be "now", got "later"',
  ],
  [
    "[CF7]",
    "a default of another type",
    field({ type: "integer", default: 1.5 }),
    `${TITLE}.default`,
    "must be a whole number",
  ],
  [
    "[CF319]",
    "no day",
    field({ type: "date", default: "2025-02-29" }),
    `${TITLE}.default`,
    "a date such as 2024-05-06",
  ],
  ["[CF330]", "a file without a bucket", field({ type: "file" }), `${TITLE}.bucket`, "is required for a file"],
  [
    "[CF330]",
    "a bucket that is not declared",
    field({ type: "file", bucket: "none" }),
    `${TITLE}.bucket`,
    "not a bucket",
  ],
  [
    "[CF330]",
    "a default of a file",
    field({ type: "file", bucket: "b", default: null }),
    `${TITLE}.default`,
    "not for file",
  ],
  [
    "[CF330]",
    "a unique file",
    field({ type: "file", bucket: "b", unique: true }),
    `${TITLE}.unique`,
    "is not for file",
  ],
  ["[CF330]", "a size of a file", field({ type: "file", bucket: "b", max: 1.5 }), `${TITLE}.max`, "counts bytes"],
  [
    "[CF330]",
    "types of a file",
    field({ type: "file", bucket: "b", types: ["png"] }),
    `${TITLE}.types.0`,
    "such as image/png",
  ],
  ["[CF330]", "no files", field({ type: "file", bucket: "b", many: 0 }), `${TITLE}.many`, "from 1 to 100"],
  ["[CF330]", "too many files", field({ type: "file", bucket: "b", many: 101 }), `${TITLE}.many`, "100"],
  [
    "[CF330]",
    "a bucket of a text",
    field({ type: "text", bucket: "b" }),
    `${TITLE}.bucket`,
    "is for file, not for text",
  ],
  ["[CF330]", "several texts", field({ type: "text", many: 2 }), `${TITLE}.many`, "is for file, not for text"],
  ["[CF319]", "a bound of a date", field({ type: "date", min: 1 }), `${TITLE}.min`, "not for date"],
  ["[CF319]", "choices of a date", field({ type: "date", enum: ["2025-02-28"] }), `${TITLE}.enum`, "not for date"],
  ["[CF319]", "a pattern of a date", field({ type: "date", pattern: "2" }), `${TITLE}.pattern`, "not for date"],
  ["[CF319]", "onUpdate of a date", field({ type: "date", onUpdate: "now" }), `${TITLE}.onUpdate`, "not for date"],
  [
    "[CF7]",
    "a default that is no day",
    field({ type: "datetime", default: "2025-02-31x" }),
    `${TITLE}.default`,
    "with an offset",
  ],
  [
    "[CF7]",
    "a default too long",
    field({ type: "string", max: 1, default: "ab" }),
    `${TITLE}.default`,
    "at most the field's max of 1 characters, got 2",
  ],
  [
    "[CF7]",
    "a default too small",
    field({ type: "number", min: 1, default: 0 }),
    `${TITLE}.default`,
    "at least the field's min",
  ],
  [
    "[CF7]",
    "a default outside the enum",
    field({ type: "string", enum: ["a"], default: "b" }),
    `${TITLE}.default`,
    'must be one of a, got "b"',
  ],
  [
    "[CF7]",
    "a default against the pattern",
    field({ type: "string", pattern: "^a$", default: "b" }),
    `${TITLE}.default`,
    "pattern",
  ],
  [
    "[CF7]",
    "a default null that is required",
    field({ type: "string", required: true, default: null }),
    `${TITLE}.default`,
    "must not be null",
  ],
  [
    "[CF7]",
    "a default function",
    field({ type: "json", default: () => 1 }),
    `${TITLE}.default`,
    "must be a JSON value",
  ],
  [
    "[CF8]",
    "an unknown table",
    field({ type: "string", references: "nope" }),
    `${TITLE}.references`,
    '"nope" is not a table of this namespace',
  ],
  [
    "[CF8]",
    "an unknown column",
    field({ type: "string", references: { table: "posts", column: "x" } }),
    `${TITLE}.references.column`,
    "not a declared field",
  ],
  [
    "[CF8]",
    "a column that is not unique",
    schema({ title: { type: "string", references: { table: "posts", column: "name" } }, name: { type: "string" } }),
    `${TITLE}.references.column`,
    "posts.name is not unique",
  ],
  [
    "[CF8]",
    "another type",
    field({ type: "integer", references: "posts" }),
    `${TITLE}.references`,
    "must have the type of posts.id",
  ],
  [
    "[CF8]",
    "set null on required, beside references",
    field({ type: "string", required: true, references: "posts", onDelete: "setNull" }),
    `${TITLE}.onDelete`,
    "cannot be set null",
  ],
  [
    "[CF8]",
    "onDelete twice",
    field({ type: "string", references: { table: "posts", onDelete: "cascade" }, onDelete: "cascade" }),
    `${TITLE}.references.onDelete`,
    "remove one of them",
  ],
  [
    "[CF8]",
    "mayBeHidden without references",
    field({ type: "string", mayBeHidden: true }),
    `${TITLE}.mayBeHidden`,
    "is for a field with references",
  ],
  [
    "[CF380]",
    "a namespace that is not declared",
    far({ references: "other/people", onDelete: "setNull" }),
    `${FAR}.references`,
    "is not a namespace of this config",
  ],
  [
    "[CF380]",
    "a namespace with instances",
    far({ references: "boards/tasks", onDelete: "setNull" }, "shared"),
    `${NS}.tables.people.schema.ref.references`,
    "has instances",
  ],
  [
    "[CF380]",
    "a table that it does not have",
    far({ references: "shared/persons", onDelete: "setNull" }),
    `${FAR}.references`,
    "is not a table of shared",
  ],
  [
    "[CF380]",
    "its own namespace",
    far({ references: "shared/people", onDelete: "setNull" }, "shared"),
    `${NS}.tables.people.schema.ref.references`,
    "same namespace",
  ],
  [
    "[CF380]",
    "another column of it",
    far({ references: { table: "shared/people", column: "name" }, onDelete: "setNull" }),
    `${FAR}.references.column`,
    "must be id",
  ],
  ["[CF380]", "no onDelete", far({ references: "shared/people" }), `${FAR}.onDelete`, "setNull or cascade"],
  [
    "[CF380]",
    "no onDelete for several",
    far({ type: "references", references: "shared/people" }),
    `${FAR}.onDelete`,
    "another namespace: remove",
  ],
  [
    "[CF380]",
    "restrict",
    far({ references: "shared/people", onDelete: "restrict" }),
    `${FAR}.onDelete`,
    "cannot be restrict",
  ],
  [
    "[CF380]",
    "remove of a required field",
    far({ type: "references", references: "shared/people", onDelete: "remove", required: true }),
    `${FAR}.onDelete`,
    "cannot be remove",
  ],
  [
    "[CF380]",
    "setNull of a field that a check compares",
    far({ references: "shared/people", onDelete: "setNull", check: "ref IS NOT NULL" }),
    `${FAR}.onDelete`,
    "a check names the field",
  ],
  [
    "[CF380]",
    "a cascade to records that others restrict",
    far({ references: "shared/people", onDelete: "cascade" }, "boards", {
      notes: { schema: { taskId: { references: "tasks" } } },
    }),
    `${FAR}.onDelete`,
    "notes.taskId restricts",
  ],
  [
    "[CF380]",
    "a number",
    far({ type: "integer", references: "shared/people", onDelete: "setNull" }),
    `${FAR}.type`,
    "whose values are ids",
  ],
  [
    "[CF320]",
    "several references without a table",
    field({ type: "references" }),
    `${TITLE}.references`,
    "the table whose ids",
  ],
  [
    "[CF320]",
    "a default of several references",
    field({ type: "references", references: "posts", default: [] }),
    `${TITLE}.default`,
    "is not for references",
  ],
  [
    "[CF320]",
    "unique several references",
    field({ type: "references", references: "posts", unique: true }),
    `${TITLE}.unique`,
    "is not for references",
  ],
  [
    "[CF320]",
    "too many references",
    field({ type: "references", references: "posts", max: 1001 }),
    `${TITLE}.max`,
    "from 1 to 1000",
  ],
  [
    "[CF320]",
    "several references to another column",
    schema({
      title: { type: "references", references: { table: "posts", column: "name" } },
      name: { type: "string", unique: true },
    }),
    `${TITLE}.references.column`,
    "several references are ids",
  ],
  [
    "[CF321]",
    "several references that cascade",
    field({ type: "references", references: "posts", onDelete: "cascade" }),
    `${TITLE}.onDelete`,
    "must be remove or restrict",
  ],
  [
    "[CF321]",
    "one reference that is taken out",
    field({ references: "posts", onDelete: "remove" }),
    `${TITLE}.onDelete`,
    "alone",
  ],
  [
    "[CF320]",
    "an index of several references",
    {
      databases: {
        shared: {
          tables: {
            posts: { schema: { title: { type: "references", references: "posts" } }, indexes: [{ fields: ["title"] }] },
          },
        },
      },
    },
    "databases.shared.tables.posts.indexes.0.fields.0",
    "an index of their own",
  ],
  [
    "[CF8]",
    "set null on required",
    field({ type: "string", required: true, references: { table: "posts", onDelete: "set null" } }),
    `${TITLE}.references.onDelete`,
    "cannot be set null",
  ],
  [
    "[CF9]",
    "an unknown fts field",
    table({ schema: { a: { type: "text" } }, fts: ["b"] }),
    `${POSTS}.fts.0`,
    '"b" is not a declared field',
  ],
  [
    "[CF9]",
    "an fts field of another type",
    table({ schema: { a: { type: "json" } }, fts: { fields: ["a"] } }),
    `${POSTS}.fts.fields.0`,
    "must be a string or text field",
  ],
  [
    "[CF9]",
    "an fts field that is called as its index",
    table({ schema: { Posts_fts: { type: "text" } }, fts: ["Posts_fts"] }),
    `${POSTS}.fts.0`,
    "cannot be searched",
  ],
  [
    "[CF395]",
    "a display that is no field",
    table({ schema: { a: { type: "string" } }, display: "b" }),
    `${POSTS}.display`,
    "b",
  ],
  [
    "[CF395]",
    "a display that is no text",
    table({ schema: { a: { type: "json" } }, display: "a" }),
    `${POSTS}.display`,
    "must be a string or text field, a is json",
  ],
  ["[CF395]", "a display of a table without a schema", table({ display: "a" }), `${POSTS}.display`, "a"],
  ["[CF9]", "fts without a schema", table({ fts: ["a"] }), `${POSTS}.fts`, "needs a schema"],
  ["[CF9]", "fts of nothing", table({ schema: { a: { type: "text" } }, fts: [] }), `${POSTS}.fts`, "must not be empty"],
  [
    "[CF9]",
    "a tokenizer",
    table({ schema: { a: { type: "text" } }, fts: { fields: ["a"], tokenize: "x" } }),
    `${POSTS}.fts.tokenize`,
    "must be one of unicode61, trigram, porter",
  ],
  [
    "[CF9]",
    "an unknown indexed field",
    table({ schema: {}, indexes: [{ fields: ["b"] }] }),
    `${POSTS}.indexes.0.fields.0`,
    "not a declared field; the fields are id, createdAt, updatedAt",
  ],
  [
    "[CF9]",
    "an index of a field switched off",
    table({ schema: { createdAt: false }, indexes: [{ fields: ["createdAt"] }] }),
    `${POSTS}.indexes.0.fields.0`,
    "not a declared field",
  ],
  [
    "[CF9]",
    "an index field twice",
    table({ indexes: [{ fields: ["id", "id"] }] }),
    `${POSTS}.indexes.0.fields.1`,
    "is listed twice",
  ],
  [
    "[CF10]",
    "versions that stand",
    table({
      migrations: [
        { version: 2, description: "a", up: "x" },
        { version: 2, description: "b", up: "y" },
      ],
    }),
    `${POSTS}.migrations.1.version`,
    "2 follows 2",
  ],
  [
    "[CF10]",
    "a version 0",
    table({ migrations: [{ version: 0, description: "a", up: "x" }] }),
    `${POSTS}.migrations.0.version`,
    "1 or more",
  ],
  ...[
    "UPDATE posts SET a = 1; COMMIT",
    "update posts set a = 1;\n-- all of it\n  commit transaction; begin;",
    "/* ; */ END",
    "SAVEPOINT x",
    "; ;RELEASE x",
    "SELECT 'it''s; ' ; ROLLBACK TO x",
    "CREATE TRIGGER t AFTER INSERT ON posts BEGIN SELECT 1; END; BEGIN IMMEDIATE",
    "ATTACH 'x.db' AS x",
    "DETACH x",
    "VACUUM",
    "PRAGMA foreign_keys = OFF",
  ].map((up): [string, string, unknown, string, string] => [
    "[CF10]",
    up,
    table({ migrations: [{ version: 1, description: "a", up }] }),
    `${POSTS}.migrations.0.up`,
    "must not contain",
  ]),
  [
    "[CF10]",
    "an open quote",
    table({ migrations: [{ version: 1, description: "a", up: "SELECT 'a" }] }),
    `${POSTS}.migrations.0.up`,
    "is not valid SQL from here",
  ],
  [
    "[CF10]",
    "no SQL",
    table({ migrations: [{ version: 1, description: "a" }] }),
    `${POSTS}.migrations.0.up`,
    "is required",
  ],
  [
    "[CF11]",
    "access of a static namespace",
    { databases: { a: { access: { open: true }, tables: {} } } },
    "databases.a.access",
    "instance: true",
  ],
  [
    "[CF12]",
    "an unknown column",
    field({ type: "string", check: "nope > 1" }),
    `${TITLE}.check`,
    "no such column: nope",
  ],
  [
    "[CF12]",
    "a parenthesis too many",
    field({ type: "string", check: "1) , (2" }),
    `${TITLE}.check`,
    "is not an expression",
  ],
  [
    "[CF13]",
    "room state",
    { rooms: { r: { maxStateSize: 10 * 1024 * 1024 + 1 } } },
    "rooms.r.maxStateSize",
    "from 1 to 10485760",
  ],
  [
    "[CF13]",
    "dimensions",
    { vectorize: { v: { dimensions: 8193 } } },
    "vectorize.v.dimensions",
    "from 1 to 8192, got 8193",
  ],
  ["[CF13]", "no dimensions", { vectorize: { v: {} } }, "vectorize.v.dimensions", "is required"],
  ["[CF300]", "no proxies", { server: { trustProxy: 0 } }, "server.trustProxy", "from 1 to 20"],
  [
    "[CF300]",
    "a name of a proxy",
    { server: { trustProxy: ["proxy"] } },
    "server.trustProxy.0",
    "an address or a range",
  ],
  [
    "[CF300]",
    "a short address",
    { server: { trustProxy: ["10.1/8"] } },
    "server.trustProxy.0",
    "an address or a range",
  ],
  [
    "[CF300]",
    "too many bits",
    { server: { trustProxy: ["10.0.0.0/33"] } },
    "server.trustProxy.0",
    "such as 10.0.0.0/8",
  ],
  [
    "[CF300]",
    "501 ranges",
    { server: { trustProxy: Array(501).fill("::1") } },
    "server.trustProxy",
    "at most 500 entries, got 501",
  ],
  [
    "[CF300]",
    "a header that anybody can send",
    { server: { clientAddressHeader: "X-Real-IP" } },
    "server.clientAddressHeader",
    "needs trustProxy",
  ],
  [
    "[CF300]",
    "no name of a header",
    { server: { trustProxy: true, clientAddressHeader: "X Real" } },
    "server.clientAddressHeader",
    "the name of a header",
  ],
  ["[CF301]", "no certificate", { server: { tls: {} } }, "server.tls", "either domains, or cert and key"],
  ["[CF301]", "a key alone", { server: { tls: { key: "k.pem" } } }, "server.tls", "either domains, or cert and key"],
  [
    "[CF301]",
    "both kinds",
    { server: { tls: { domains: ["a.example"], cert: "c.pem", key: "k.pem" } } },
    "server.tls.cert",
    "does not go with domains",
  ],
  [
    "[CF301]",
    "files with challenges",
    { server: { tls: { cert: "c.pem", key: "k.pem", challengePort: 80 } } },
    "server.tls.challengePort",
    "does not go with cert",
  ],
  ["[CF301]", "a wildcard", { server: { tls: { domains: ["*.a.example"] } } }, "server.tls.domains.0", "a wildcard"],
  ["[CF301]", "an address", { server: { tls: { domains: ["192.0.2.1"] } } }, "server.tls.domains.0", "a host name"],
  ["[CF301]", "a URL", { server: { tls: { domains: ["https://a.example"] } } }, "server.tls.domains.0", "a host name"],
  [
    "[CF301]",
    "a name twice",
    { server: { tls: { domains: ["a.example", "a.example"] } } },
    "server.tls.domains",
    '"a.example" twice',
  ],
  ["[CF13]", "a body size", { server: { maxBodySize: 0 } }, "server.maxBodySize", "1 or more"],
  [
    "[CF13]",
    "a lifetime",
    { auth: { session: { accessTokenTtl: 0 } } },
    "auth.session.accessTokenTtl",
    "a whole number of seconds",
  ],
  [
    "[CF13]",
    "a lifetime of parts",
    { auth: { session: { refreshTokenTtl: 3600.0005 } } },
    "auth.session.refreshTokenTtl",
    "a whole number of seconds",
  ],
  [
    "[CF13]",
    "a lifetime without end",
    { auth: { session: { refreshTokenTtl: 1e18 } } },
    "auth.session.refreshTokenTtl",
    "a whole number of seconds",
  ],
  [
    "[CF26]",
    "a broken time to live",
    { rooms: { r: { stateTtl: 1000.5 } } },
    "rooms.r.stateTtl",
    "whole number of milliseconds",
  ],
  [
    "[CF26]",
    "a broken window",
    { rateLimits: { auth: { requests: 1, window: 0.5 } } },
    "rateLimits.auth.window",
    "whole",
  ],
  [
    "[CF26]",
    "a time without end",
    { realtime: { presenceTtl: 1e300 } },
    "realtime.presenceTtl",
    "from 1 to 3153600000000",
  ],
  ["[CF13]", "a rate", { rateLimits: { auth: { requests: 0, window: 60 } } }, "rateLimits.auth.requests", "1 or more"],
  [
    "[CF13]",
    "an unknown group",
    { rateLimits: { uploads: { requests: 1, window: 60 } } },
    "rateLimits.uploads",
    "the options are global, auth, signin, signup, events",
  ],
  [
    "[CF13]",
    "a port",
    { auth: { mail: { smtp: { host: "a", port: 70_000 } } } },
    "auth.mail.smtp.port",
    "from 1 to 65535",
  ],
  [
    "[CF13]",
    "a thumb",
    { storage: { buckets: { b: { thumbs: ["0x5"] } } } },
    "storage.buckets.b.thumbs.0",
    "WIDTHxHEIGHT",
  ],
  [
    "[CF13]",
    "thumbnails at once",
    { storage: { buckets: {}, thumbs: { atOnce: 0 } } },
    "storage.thumbs.atOnce",
    "from 1 to 16",
  ],
  [
    "[CF14]",
    "an unknown area",
    { serviceKeys: { k: { key: "sssssssssssssssssssssss", scopes: ["files:a:b:read"] } } },
    "serviceKeys.k.scopes.0",
    '"files" is not one of',
  ],
  [
    "[CF14]",
    "three parts",
    { serviceKeys: { k: { key: "sssssssssssssssssssssss", scopes: ["db:a:read"] } } },
    "serviceKeys.k.scopes.0",
    "four parts",
  ],
  [
    "[CF14]",
    "an unknown action",
    { serviceKeys: { k: { key: "sssssssssssssssssssssss", scopes: ["push:*:*:shout"] } } },
    "serviceKeys.k.scopes.0",
    '"shout" is not an action of push',
  ],
  [
    "[CF14]",
    "an expiry",
    { serviceKeys: { k: { key: "sssssssssssssssssssssss", expiresAt: "soon" } } },
    "serviceKeys.k.expiresAt",
    "ISO 8601",
  ],
  [
    "[CF14]",
    "an address",
    { serviceKeys: { k: { key: "sssssssssssssssssssssss", ips: ["10.0.0.0/33"] } } },
    "serviceKeys.k.ips.0",
    "10.0.0.0/8",
  ],
  [
    "[CF14]",
    "an address with fewer than four parts, which programs read differently",
    { serviceKeys: { k: { key: "sssssssssssssssssssssss", ips: ["192.168/16"] } } },
    "serviceKeys.k.ips.0",
    "10.0.0.0/8",
  ],
  [
    "[CF14]",
    "one key twice",
    { serviceKeys: { a: { key: "sssssssssssssssssssssss" }, b: { key: "sssssssssssssssssssssss" } } },
    "serviceKeys.b.key",
    "is also the key of a",
  ],
  [
    "[CF14]",
    "a key that no header carries",
    { serviceKeys: { k: { key: "a b" } } },
    "serviceKeys.k.key",
    "sent in a header",
  ],
  [
    "[CF14]",
    "a short key",
    { serviceKeys: { k: { key: "0123456789abcdefghi" } } },
    "serviceKeys.k.key",
    "must have at least 20 characters, got 19",
  ],
  [
    "[CF14]",
    "root",
    { serviceKeys: { root: { key: "sssssssssssssssssssssss" } } },
    "serviceKeys.root",
    "the data directory's own key",
  ],
  ["[CF15]", "a rule for sign-ups", { auth: { signup: "closed" } }, "auth.signup", "true, false or a function"],
  [
    "[CF15]",
    "a public URL",
    { server: { publicUrl: "example.com" } },
    "server.publicUrl",
    "begins with https: or http:",
  ],
  [
    "[CF15]",
    "a public URL with a query",
    { server: { publicUrl: "https://a.example/?x=1" } },
    "server.publicUrl",
    "query",
  ],
  [
    "[CF15]",
    "an origin with a path",
    { cors: { origin: ["https://a.example/"] } },
    "cors.origin.0",
    "must be * or an origin",
  ],
  ["[CF360]", "pages at the root", { auth: { pages: { path: "/" } } }, "auth.pages.path", "must be a path"],
  ["[CF360]", "pages at the server's own path", { auth: { pages: { path: "/API/auth" } } }, "auth.pages.path", "/API"],
  ["[CF360]", "pages with a slash at the end", { auth: { pages: { path: "/auth/" } } }, "auth.pages.path", "slash"],
  ["[CF360]", "pages with a parameter", { auth: { pages: { path: "/:auth" } } }, "auth.pages.path", "must be a path"],
  ["[CF360]", "a bucket of pictures", { auth: { pages: { pictures: "x" } } }, "auth.pages.pictures", "not a bucket"],
  [
    "[CF360]",
    "a home elsewhere",
    { auth: { pages: { home: "https://a.example" } } },
    "auth.pages.home",
    "redirectUrls",
  ],
  ["[CF360]", "a home without an origin", { auth: { pages: { home: "//a.example" } } }, "auth.pages.home", "a path"],
  ["[CF360]", "a colour", { auth: { pages: { accent: "red" } } }, "auth.pages.accent", "a colour"],
  [
    "[CF362]",
    "a language with a text",
    { auth: { pages: { languages: { fr: { signIn: "x" } } } } },
    "auth.pages.languages.fr.signUp",
    "is missing",
  ],
  [
    "[CF362]",
    "the tag of a language",
    { auth: { pages: { languages: { french: {} } } } },
    "auth.pages.languages.french",
    "not the tag",
  ],
  ["[CF363]", "a logo", { auth: { pages: { logo: "./logo.txt" } } }, "auth.pages.logo", "must be an SVG"],
  [
    "[CF364]",
    "one of several origins of passkeys",
    {
      auth: { passkeys: { rpName: "App", rpId: "app.example", origin: ["https://app.example", "https://b.example/"] } },
    },
    "auth.passkeys.origin.1",
    "must be an origin",
  ],
  [
    "[CF15]",
    "an origin of passkeys with a slash at its end",
    { auth: { passkeys: { rpName: "App", rpId: "app.example", origin: "https://app.example/" } } },
    "auth.passkeys.origin",
    "must be an origin",
  ],
  [
    "[CF15]",
    "a * that extends the host",
    { auth: { redirectUrls: ["https://app.example*"] } },
    "auth.redirectUrls.0",
    "other hosts",
  ],
  [
    "[CF15]",
    "a * for a part of a host",
    { auth: { redirectUrls: ["https://*.example.com/*"] } },
    "auth.redirectUrls.0",
    "must not have a * in its host",
  ],
  [
    "[CF25]",
    "a provider of an unknown name",
    { auth: { oauth: { okta: { clientId: "a", clientSecret: "b" } } } },
    "auth.oauth.okta.issuer",
    "are built in",
  ],
  [
    "[CF25]",
    "a provider with some addresses of its own",
    { auth: { oauth: { club: { clientId: "a", clientSecret: "b", tokenUrl: "https://club.example.com" } } } },
    "auth.oauth.club.profile",
    "is required for a provider with addresses",
  ],
  [
    "[CF25]",
    "an issuer beside addresses",
    {
      auth: {
        oauth: {
          club: { clientId: "a", clientSecret: "b", issuer: "https://a.example", tokenUrl: "https://a.example" },
        },
      },
    },
    "auth.oauth.club.tokenUrl",
    "beside issuer",
  ],
  [
    "[CF25]",
    "Apple without its key",
    { auth: { oauth: { apple: { clientId: "a", clientSecret: "b" } } } },
    "auth.oauth.apple.privateKey",
    "is required for apple",
  ],
  [
    "[CF25]",
    "a provider without a secret",
    { auth: { oauth: { google: { clientId: "a" } } } },
    "auth.oauth.google.clientSecret",
    "is required",
  ],
  [
    "[CF25]",
    "a tenant of a provider that has none",
    { auth: { oauth: { google: { clientId: "a", clientSecret: "b", tenant: "common" } } } },
    "auth.oauth.google.tenant",
    "has no use",
  ],
  [
    "[CF25]",
    "a provider called like a member of every object",
    { auth: { oauth: { toString: { clientId: "a", clientSecret: "b" } } } },
    "auth.oauth.toString.issuer",
    "is required",
  ],
  ["[CF15]", "a relative redirect", { auth: { redirectUrls: ["/welcome"] } }, "auth.redirectUrls.0", "absolute URL"],
  [
    "[CF15]",
    "a web push subject",
    { push: { webPush: { subject: "me", publicKey: "a", privateKey: "b" } } },
    "push.webPush.subject",
    "mailto: or https:",
  ],
  [
    "[CF24]",
    "a VAPID private key of another length",
    { push: { webPush: { subject: "mailto:a@example.com", ...vapidKeys, privateKey: "abc" } } },
    "push.webPush.privateKey",
    "32 bytes",
  ],
  [
    "[CF24]",
    "a VAPID public key of another pair",
    { push: { webPush: { subject: "mailto:a@example.com", ...vapidKeys, publicKey: "BPx_-1" } } },
    "push.webPush.publicKey",
    "belongs to privateKey",
  ],
  [
    "[CF24]",
    "a service account's key that is none",
    { push: { fcm: { projectId: "p", serviceAccount: { client_email: "a@b.example", private_key: "k" } } } },
    "push.fcm.serviceAccount.private_key",
    "RSA key",
  ],
];

describe("checkConfig", () => {
  for (const [rule, what, config, path, words] of CASES) {
    test(`${rule} ${what} is reported at its path`, () => {
      const found = problemsOf(config);
      expect(found.map((problem) => problem.slice(0, path.length + 1))).toContain(`${path}:`);
      expect(found.find((problem) => problem.startsWith(`${path}: `))).toContain(words);
    });
  }

  test("[CF1] every problem is reported, and a broken field does not hide those of its references", () => {
    const found = problemsOf({
      api: { docs: 1 },
      databases: {
        shared: {
          tables: {
            posts: {
              schema: { title: { type: "strng" }, ownerId: { type: "string", references: "users" } },
              fts: ["titel"],
              access: { read: "everyone" },
            },
          },
        },
      },
      kv: { "a b": {} },
    });
    expect(found.map((problem) => problem.split(": ")[0])).toEqual([
      "api.docs",
      `${TITLE}.type`,
      `${POSTS}.access.read`,
      `${POSTS}.fts.0`,
      `${POSTS}.schema.ownerId.references`,
      "kv.a b",
    ]);
  });

  test("[CF6] createdAt and updatedAt may be false", () => {
    expect(problemsOf(schema({ createdAt: false, updatedAt: false }))).toEqual([]);
  });

  test("[CF8] valid references", () => {
    const users = { schema: { email: { type: "text", unique: true }, number: { type: "integer", unique: true } } };
    const posts = {
      schema: {
        authorId: { type: "string", references: "users" },
        email: { type: "string", references: { table: "users", column: "email", onDelete: "set null" } },
        number: { type: "integer", references: { table: "users", column: "number", onDelete: "cascade" } },
        parentId: { type: "text", references: { table: "posts" } },
      },
    };
    expect(problemsOf({ databases: { shared: { tables: { users, posts } } } })).toEqual([]);
  });

  test("[CF16] no message contains a secret", () => {
    const secret = "hunter2 with a space";
    const found = problemsOf({
      serviceKeys: { a: { key: secret } },
      auth: { oauth: { google: { clientId: 1, clientSecret: [secret] } }, mail: { smtp: { pass: [secret] } } },
      push: { fcm: { projectId: "p", serviceAccount: { client_email: "", private_key: [secret] } } },
      storage: { buckets: { b: { backend: { s3: { secretAccessKey: [secret] } } } } },
    });
    expect(found.length).toBeGreaterThan(4);
    expect(found.join("\n")).not.toContain("hunter2");
  });

  test("[CF17] a name from a request finds only what was declared", () => {
    const config = checkedConfig({
      databases: { shared: { tables: { posts: { schema: { title: { type: "string" } } } } } },
      storage: { buckets: {} },
      rooms: { game: { actions: { move: () => null } } },
    });
    for (const map of [
      config.databases,
      config.databases?.["shared"]?.tables,
      config.databases?.["shared"]?.tables["posts"]?.schema,
      config.storage?.buckets,
      config.rooms,
      config.rooms?.["game"]?.actions,
    ]) {
      expect(Object.getPrototypeOf(map)).toBeNull();
    }
    expect(config.databases?.["shared"]?.tables["posts"]?.schema?.["title"]).toEqual({ type: "string" });
    expect(config.kv).toBeUndefined();
  });

  test("[CF1] the error of a start has every problem", () => {
    expect(() => checkedConfig({ api: { docs: 1 }, kv: 2 }, "/etc/platform.config.ts")).toThrow(
      new ConfigError("/etc/platform.config.ts has 2 problems:", [
        { path: "api.docs", message: "must be true or false, got 1" },
        { path: "kv", message: "must be an object, got 2" },
      ]),
    );
  });

  test("a config that uses everything has no problem", () => {
    expect(problemsOf(EVERYTHING)).toEqual([]);
  });
});

describe("views", () => {
  const onePerUser = {
    schema: { userId: { type: "string" }, day: { type: "date" } },
    indexes: [{ fields: ["userId", "day"], unique: true }],
  };
  const FINE: [what: string, config: unknown][] = [
    ["groups", sql(GROUPED, { stars: { type: "number" } })],
    [
      "every column of one table",
      sql("SELECT * FROM films", {
        title: { type: "string", required: true },
        createdAt: { type: "datetime", required: true },
      }),
    ],
    [
      "a condition, an order and a comment at the end",
      sql("SELECT id FROM films WHERE title > 'a' ORDER BY title LIMIT 10 -- ten"),
    ],
    [
      "a common table expression",
      sql(
        "WITH best AS (SELECT filmId, max(stars) AS stars FROM ratings WHERE filmId IS NOT NULL GROUP BY filmId) SELECT filmId AS id, stars FROM best",
        { stars: { type: "integer", required: true } },
      ),
    ],
    [
      "a window",
      sql("SELECT id, row_number() OVER (ORDER BY title) AS place FROM films", {
        place: { type: "integer", required: true },
      }),
    ],
    ["ids of two tables", sql("SELECT 'f' || id AS id FROM films UNION ALL SELECT 'r' || id FROM ratings")],
    ["distinct values", sql("SELECT DISTINCT genre AS id FROM films WHERE genre IS NOT NULL")],
    [
      "elements of JSON",
      view({
        sql: "SELECT n.id || '/' || tag.value AS id, tag.value AS tag FROM notes n, json_each(n.record, '$.tags') tag",
        schema: { tag: { type: "string" } },
      }),
    ],
    [
      "what a unique index allows once",
      view(
        {
          sql: "SELECT f.id, d.day FROM films f LEFT JOIN days d ON d.userId = f.id AND d.day = date('now')",
          schema: { day: { type: "date" } },
        },
        "top",
        { days: onePerUser },
      ),
    ],
    [
      "recursion",
      sql("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT CAST(n AS TEXT) AS id FROM c"),
    ],
    [
      "an enum and a reference",
      sql("SELECT id, filmId, 'new' AS state FROM ratings", {
        filmId: { references: "films" },
        state: { type: "string", enum: ["new"], required: true },
      }),
    ],
    [
      "names of SQL",
      view({ sql: 'SELECT "order".id, "group" FROM "order"', schema: { group: { type: "string" } } }, "select", {
        order: { schema: { group: { type: "string" } } },
      }),
    ],
  ];
  for (const [what, config] of FINE) {
    test(`[CF352, CF353] ${what} may make a view`, () => expect(problemsOf(config)).toEqual([]));
  }

  test("[CF352] SQL that reaches for more than the declared columns of declared tables is refused", () => {
    const reaching = [
      "SELECT id, _platform_address FROM people",
      "SELECT id FROM main.people",
      'SELECT id FROM "main"."people"',
      "SELECT id FROM [main].people",
      "SELECT id FROM temp.people",
      "SELECT m.id FROM people m, main . people n",
      "SELECT (SELECT group_concat(name) FROM sqlite_schema) AS id FROM people",
      "SELECT sql AS id FROM sqlite_temp_master",
      "SELECT name AS id FROM pragma_database_list",
      "SELECT name AS id FROM dbstat",
      "WITH x AS (SELECT * FROM sqlite_schema) SELECT name AS id FROM x",
      "SELECT id FROM _platform_outbox",
      "SELECT id || oid AS id FROM people",
      "SELECT id || people._rowid_ AS id FROM people",
      "SELECT id FROM people UNION ALL SELECT name FROM sqlite_master",
      "ATTACH 'a.db' AS other",
      "SELECT _platform_bucket(createdAt, 'day', 'UTC') AS id FROM people",
    ];
    const config = (text: string) => ({ auth: { users: { in: "shared", table: "people" } }, ...sql(text) });
    for (const text of reaching)
      expect([text, ...problemsOf(config(text))]).toEqual([text, expect.stringContaining(".views.top.sql: ")]);
    expect(problemsOf(config("SELECT id, email FROM people"))).toEqual([]);
  });

  test("[CF351] the warnings about a view name it where it is declared", () => {
    const config = view({ sql: "SELECT id FROM films", schema: {} });
    const open = view({
      sql: "SELECT id FROM films",
      schema: {},
      access: { read: () => [{ some: { table: "nothing", where: [] } }] },
    });
    const about = (one: unknown) =>
      configWarnings(checkedConfig(one))
        .filter(({ path }) => path.includes("views"))
        .map(({ path, message }) => `${path} ${message}`);
    const asking = {
      asking: {
        access: {
          read: (_auth: unknown, _record: unknown, context: { table(name: string): Lookup }) =>
            context.table("top").exists([["id", "==", "a"]]),
          insert: () => [{ some: { table: "top", where: [["id", "==", "a"]] } }],
        },
      },
    };
    const asked = view({ sql: "SELECT id FROM films", schema: {}, access: { read: true } }, "top", asking);
    expect(configWarnings(checkedConfig(asked)).map(({ message }) => message)).toEqual(
      expect.arrayContaining([
        "looks up shared.top, which denies: it is a view",
        "has a relation that makes it deny: top is not a table of its namespace, but a view",
      ]),
    );
    expect(about(config)).toEqual([`${NS}.views.top has no access: only service keys can use it`]);
    expect(about(open)).toEqual([
      expect.stringContaining(`${NS}.views.top.access.read has a relation that makes it deny: nothing is not a table`),
    ]);
  });
});

describe("configWarnings", () => {
  test("[CF350] tokens for others whose issuer could change", () => {
    const warned = (config: Parameters<typeof configWarnings>[0]) => configWarnings(config).map(({ path }) => path);
    const tokens = { audience: "api" };
    expect(warned({ auth: { tokens } })).toEqual(["auth.tokens.issuer"]);
    expect(warned({ auth: { tokens: { ...tokens, issuer: "https://id.example.com" } } })).toEqual([]);
    expect(warned({ auth: { tokens }, server: { publicUrl: "https://id.example.com" } })).toEqual([]);
  });

  const warningsOf = (config: unknown) => configWarnings(checkedConfig(config)).map(({ path }) => path);
  const rule = () => true;
  const access = (declared: unknown) => warningsOf(table({ access: declared }));

  test("[CF18] warns of an insert that could overwrite what the update rule protects", () => {
    const own = (_auth: unknown, record: { owner?: string }) => record.owner === "me";
    expect(access({ insert: true })).toEqual([`${POSTS}.access`]);
    expect(access({ insert: true, update: false })).toEqual([`${POSTS}.access`]);
    expect(access({ insert: true, update: rule })).toEqual([`${POSTS}.access`]);
    expect(access({ insert: rule, update: () => false })).toEqual([`${POSTS}.access`]);
    expect(access({ insert: true, upsert: "either" })).toEqual([`${POSTS}.access`]);
    expect(access({ insert: rule, update: () => [], upsert: "either" })).toEqual([`${POSTS}.access`]);
    // The insert rule receives the record as it would become.
    expect(access({ insert: own, update: own, upsert: "either" })).toEqual([`${POSTS}.access`]);
  });

  test("[ST23] warns of a bucket whose files have the rights of who opens them", () => {
    const bucket = (inline: unknown) =>
      warningsOf({ storage: { buckets: { pages: { inline, access: { read: true } } } } });
    expect(bucket("sameOrigin")).toEqual(["storage.buckets.pages.inline"]);
    expect(bucket(true)).toEqual([]);
  });

  test("[CF18] no warning where the update rule applies, or nothing can be overwritten", () => {
    const own = (_auth: unknown, record: { owner?: string }) => record.owner === "me";
    expect(access({ insert: true, upsert: "matching" })).toEqual([]);
    expect(access({ insert: true, update: own })).toEqual([]);
    expect(access({ insert: own, update: rule })).toEqual([]);
    // Where one returns a filter, the fitting rule decides.
    const filter = (auth: { id: string } | null) => [["owner", "==", auth?.id ?? ""]];
    expect(access({ insert: (auth: { id: string }) => ({ or: [filter(auth)] }), update: rule })).toEqual([]);
    expect(access({ insert: () => true, update: () => [] })).toEqual([]);
    expect(access({ insert: true, update: true, upsert: "either" })).toEqual([]);
    expect(access({ insert: false, update: rule, upsert: "either" })).toEqual([]);
    expect(access({ insert: rule, update: rule })).toEqual([]);
    expect(access({ insert: rule, update: true })).toEqual([]);
    expect(access({ read: true, update: rule })).toEqual([]);
  });

  test("[CF311] an update rule whose filter names fields that may be changed", () => {
    const named = (update: unknown, fixed: readonly string[] = []) => {
      const field = (name: string) => ({ type: "string", fixed: fixed.includes(name) });
      const schema = { ownerId: field("ownerId"), teamId: field("teamId") };
      const members = {
        schema: { userId: { type: "string" } },
        indexes: [{ fields: ["userId"] }],
        access: { read: true },
      };
      const config = { databases: { shared: { tables: { members, posts: { schema, access: { update } } } } } };
      const found = configWarnings(checkedConfig(config)).filter(({ path }) => path === `${POSTS}.access.update`);
      return found.map(({ message }) => /filter on (.*), which/.exec(message)?.[1]);
    };
    const own = (auth: { id: string }) => [["ownerId", "==", auth.id]];
    const team = () => {
      const where = [["userId", "==", "u"], { not: [["userId", "!=", { field: "teamId" }]] }];
      return { or: [own({ id: "a" }), [{ some: { table: "members", where } }]] };
    };
    expect(named(own)).toEqual(["ownerId"]);
    expect(named(own, ["ownerId"])).toEqual([]);
    expect(named(team)).toEqual(["ownerId, teamId"]);
    expect(named(team, ["ownerId", "teamId"])).toEqual([]);
    expect(named(() => ({ not: [["id", "==", "a"]] }))).toEqual([]);
    expect(named(() => true)).toEqual([]);
    expect(
      named((_auth: unknown, post: JsonObject, next: JsonObject) => post["teamId"] === next["teamId"] && team()),
    ).toEqual([]);
  });

  test("[TB149] a pattern that is slow for a short text", () => {
    const patterned = (pattern: unknown) =>
      warningsOf(table({ schema: { slug: { type: "string", pattern } }, access: { read: true } }));
    expect(patterned("^(a+)+$")).toEqual([`${POSTS}.schema.slug.pattern`]);
    expect(patterned(/^(\w+\s?)*$/)).toEqual([`${POSTS}.schema.slug.pattern`]);
    expect(patterned("^([a-z]+-)*[a-z]+$")).toEqual([]);
  });

  describe("[CF203] lookups that no index answers", () => {
    type Context = { table(name: string): Lookup; db(name: string): { table(name: string): Lookup } };
    const messagesOf = (read: unknown) => {
      const members = {
        schema: { role: { type: "string" }, userId: { type: "string" }, email: { type: "string", unique: true } },
        indexes: [{ fields: ["userId", "role"] }],
        access: { read: true },
      };
      const config = { databases: { shared: { tables: { members, posts: { access: { read } } } } } };
      return configWarnings(checkedConfig(config)).map(({ path, message }) => `${path} ${message}`);
    };

    test("are named with the index to declare, also behind another lookup", () => {
      const behind = (auth: { id: string } | null, _post: unknown, { table }: Context) =>
        auth !== null &&
        table("members").get(auth.id) !== null &&
        table("members").where("role", "==", "owner").exists();
      const [message, ...others] = messagesOf(behind);
      expect(others).toEqual([]);
      expect(message).toStartWith(`${POSTS}.access.read looks up shared.members without an index`);
      expect(message).toContain('declare indexes: [{ fields: ["role"] }]');
      const [every] = messagesOf((_auth: unknown, _post: unknown, { db }: Context) =>
        db("shared").table("members").list(),
      );
      expect(every).toContain("name the id or an indexed field");
      const [missing] = messagesOf((_auth: unknown, _post: unknown, { table }: Context) => table("member").get("x"));
      expect(missing).toContain("looks up shared.member, which is not declared");
    });

    test("[CF340] forms that end with 0.4 are named, with what to write instead", () => {
      const former = (auth: { id: string }, _post: unknown, { table }: Context) =>
        table("members").first([["id", "==", auth.id]]) !== null ||
        table("members").list([["id", "==", auth.id]]).length > 0;
      const uses = (form: string, instead: string) =>
        `${POSTS}.access.read uses ${form} of shared.members, which ends with 0.4: write ${instead}`;
      expect(messagesOf(former)).toEqual([
        uses("first(filter)", "where(filter).first()"),
        uses("list(filter)", "where(filter).list().items"),
      ]);
    });

    test("[TB605] relations are named too, with what makes them deny", () => {
      const of = (...relations: unknown[]) =>
        messagesOf((auth: { id: string } | null) => (auth === null ? false : relations));
      const users = (...more: unknown[]) => ({
        some: { table: "members", where: [["userId", "==", { field: "ownerId" }], ...more] },
      });
      expect(
        of(
          users(),
          { or: [[users(["role", "==", "owner"])]] },
          { none: { table: "members", where: [["email", "==", "x"]] } },
        ),
      ).toEqual([]);
      const name = `${POSTS}.access.read has a relation that makes it deny:`;
      expect(of({ not: [{ some: { table: "member", where: [] } }] })).toEqual([
        `${name} member is not a table of its namespace`,
      ]);
      expect(of(users(["rank", ">", 1]))).toEqual([`${name} rank is not a field of members`]);
      const [missing] = of({ none: { table: "members", where: [["role", "==", { field: "role" }]] } });
      expect(missing).toContain('no index of members answers it: declare indexes: [{ fields: ["role"] }]');
      const [inside] = of(users({ some: { table: "members", where: [["email", "==", { field: "nothing" }]] } }));
      expect(inside).toContain("nothing is not a field of the table");
    });

    test("those that an index answers are not, nor what is not tried", () => {
      const indexed = (auth: { id: string }, _post: unknown, { table }: Context) =>
        table("members").where("userId", "==", auth.id).where("role", "!=", "guest").sort("role").first() !== null ||
        table("members")
          .where([["email", "in", ["a"]]])
          .exists() ||
        table("members").where("id", "==", auth.id).list().items.length > 0 ||
        table("members").where("id", "==", auth.id).expand("userId").page(1).items.length > 0;
      expect(messagesOf(indexed)).toEqual([]);
      expect(
        messagesOf(async (_auth: unknown, _post: unknown, { table }: Context) => table("nothing").get("x")),
      ).toEqual([]);
      const throwing = () => {
        throw new Error("broken");
      };
      expect(messagesOf((_auth: unknown, _post: unknown, _context: Context) => throwing())).toEqual([]);
    });
  });

  test("[CF204] a sign-up rule that trusts an unproved email", () => {
    const signup = (rule: unknown, more: object = {}) => warningsOf({ auth: { signup: rule, ...more } });
    const byDomain = ({ email }: { email: string }) => email.endsWith("@example.com");
    const proved = (facts: { email: string; emailVerified: boolean }) => facts.emailVerified && byDomain(facts);
    expect(signup(byDomain)).toEqual(["auth.signup"]);
    expect(signup(byDomain, { requireVerifiedEmail: true })).toEqual([]);
    expect([signup(proved), signup(() => true), signup(false)]).toEqual([[], [], []]);
  });

  test("[CF18] what only service keys can use", () => {
    const config = {
      databases: { shared: { tables: { posts: {} } }, teams: { instance: true, tables: {} } },
      storage: { buckets: { files: {} } },
      rooms: { game: {} },
      cors: { credentials: true },
    };
    expect(warningsOf(config)).toEqual([
      "databases.shared.tables.posts",
      "databases.teams.tables",
      "databases.teams",
      "storage.buckets.files",
      "rooms.game",
      "cors",
    ]);
  });
});

const EVERYTHING = {
  server: {
    publicUrl: "https://api.example.com/base",
    trustProxy: ["10.0.0.0/8", "2001:db8::/32", "127.0.0.1"],
    clientAddressHeader: "X-Real-IP",
    tls: {
      domains: ["api.example.com"],
      email: "a@example.com",
      directory: "https://ca.example/dir",
      challengePort: 80,
    },
    hsts: true,
    accessLog: true,
    maxBodySize: 1024,
  },
  cors: { origin: ["https://app.example.com", "http://localhost:5173"], credentials: true, maxAge: 0 },
  databases: {
    shared: {
      tables: {
        posts: {
          schema: {
            title: { type: "string", required: true, unique: true, min: 1, max: 200, pattern: "^\\S", default: "x" },
            body: { type: "text", default: "", pattern: /\p{L}*/u },
            stars: { type: "integer", min: 1, max: 5, default: 3, check: "stars <> 4 AND length(title) > 0" },
            price: { type: "number", enum: [1.5, 2], default: 2 },
            isDraft: { type: "boolean", default: false },
            editedAt: { type: "datetime", onUpdate: "now", default: "2024-02-29T10:00:00Z" },
            extra: { type: "json", default: { a: [1, null] } },
            parentId: { type: "string", references: { table: "posts", onDelete: "cascade" } },
            updatedAt: false,
          },
          fts: { fields: ["title", "body"], tokenize: "trigram" },
          indexes: [{ fields: ["stars", "createdAt"], unique: true }],
          access: { read: true, insert: () => true, update: () => [], delete: false, upsert: "matching" },
          hooks: { beforeInsert: () => {}, afterDelete: () => {} },
          migrations: [
            { version: 3, description: "renames", up: "SELECT 1" },
            {
              version: 4,
              description: "begins nothing",
              up: `UPDATE posts SET title = 'a; COMMIT' WHERE "begin" = 1; -- ; COMMIT
                CREATE TEMP TRIGGER x AFTER UPDATE ON posts BEGIN DELETE FROM posts; SELECT CASE WHEN 1 THEN 2 END; END;
                SELECT [end], \`commit\` FROM posts; /* ; ROLLBACK */ DROP TRIGGER x`,
            },
          ],
        },
        free: {},
      },
    },
    "team-files": {
      instance: true,
      access: { create: true, open: () => true },
      tables: { notes: {} },
      quota: { perInstance: 65_536, instancesPerUser: 1 },
    },
  },
  storage: {
    buckets: {
      "user-files": {
        maxFileSize: 1,
        access: { read: true, write: () => true, delete: false },
        inline: "sameOrigin",
        thumbs: ["200x200"],
        backend: { s3: { endpoint: "http://127.0.0.1:9000", bucket: "b", accessKeyId: "a", secretAccessKey: "s" } },
      },
    },
    thumbs: { atOnce: 2, maxMegapixels: 100 },
  },
  auth: {
    emailPassword: true,
    anonymous: true,
    magicLink: true,
    emailOtp: true,
    mfa: { totp: true },
    session: { accessTokenTtl: 60, refreshTokenTtl: 3600, maxActive: 0 },
    password: { minLength: 12 },
    oauth: { google: { clientId: "a", clientSecret: "b", issuer: "https://accounts.example.com", scopes: ["email"] } },
    passkeys: { rpName: "App", rpId: "example.com", origin: "https://example.com" },
    redirectUrls: ["https://app.example.com/*", "myapp://signed-in", "http://localhost:3000/done"],
    mail: {
      smtp: { host: "smtp.example.com", port: 587, user: "u", pass: "p", secure: false },
      from: "App <app@example.com>",
      templates: { magicLink: { subject: "Sign in", text: "{{link}}", html: "<a href='{{link}}'>in</a>" } },
    },
    captcha: { provider: "turnstile", siteKey: "k", secretKey: "s", endpoint: "https://check.example.com" },
  },
  kv: { settings: {} },
  d1: { reports: {} },
  vectorize: { articles: { dimensions: 8192, metric: "dot-product" } },
  rooms: {
    game: {
      maxPlayers: 4,
      maxStateSize: 10 * 1024 * 1024,
      messageRate: 20,
      authTimeout: 1000,
      pendingPerAddress: 30,
      reconnectTimeout: 0,
      saveInterval: 1000,
      stateTtl: 1000,
      idleTimeout: 1000,
      access: { join: true, action: () => true },
      onCreate: () => {},
      onJoin: () => {},
      onLeave: () => {},
      onDestroy: () => {},
      actions: { move: () => null, Move: () => null, "player:jump": () => null },
      timers: { tick: () => {} },
    },
  },
  realtime: {
    access: { broadcast: () => true, presence: false },
    authTimeout: 1,
    pendingPerAddress: 1,
    presenceTtl: 1,
    batchThreshold: 1,
    messageRate: 1,
  },
  push: {
    fcm: {
      projectId: "p",
      serviceAccount: "./account.json",
      endpoint: "http://127.0.0.1:1",
      tokenEndpoint: "https://a.example/t",
    },
    webPush: { subject: "mailto:a@example.com", ...vapidKeys },
  },
  analytics: { requestLog: false, slowMs: 250 },
  audit: { days: 30 },
  rateLimits: { global: { requests: 1, window: 1 }, signin: { requests: 5, window: 1 } },
  serviceKeys: {
    ci: {
      key: "secret-1-0123456789abcdef",
      scopes: ["storage:bucket:*:read", "db:shared:posts:insert", "d1:database:reports:*", "*:*:*:*"],
      expiresAt: "2030-01-01T00:00:00Z",
      ips: ["10.0.0.0/8", "::1"],
    },
  },
  api: { schemaEndpoint: "authenticated", docs: false },
  mcp: true,
};
