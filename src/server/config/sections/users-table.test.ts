import { expect, test } from "bun:test";
import { checkConfig } from "../check.ts";
import { usersPlace } from "./users-table.ts";

const SHARED = { shared: { tables: { docs: { schema: { title: { type: "text" } } } } } };

/** Returns `path: message` of every problem. */
function problemsOf(users: unknown, databases: unknown = SHARED): string[] {
  const checked = checkConfig({ auth: { users }, databases });
  return "problems" in checked ? checked.problems.map(({ path, message }) => `${path}: ${message}`) : [];
}

const referring = (by: unknown) => ({ shared: { tables: { docs: { schema: { title: { type: "text" }, by } } } } });
const own = (field: unknown) => ({ in: "shared", schema: { field } });
const FIELD = "auth.users.schema.field";

const CASES: [rule: string, what: string, users: unknown, databases: unknown, path: string, words: string][] = [
  ["[CF345]", "no namespace", {}, SHARED, "auth.users.in", "is required"],
  ["[CF345]", "an unknown namespace", { in: "x" }, SHARED, "auth.users.in", '"x" is not a namespace'],
  ["[CF345]", "no databases", { in: "shared" }, {}, "auth.users.in", "is not a namespace"],
  [
    "[CF345]",
    "instances",
    { in: "many" },
    { many: { instance: true, tables: {} } },
    "auth.users.in",
    "without instance: true",
  ],
  [
    "[CF345]",
    "a name that is taken",
    { in: "shared" },
    { shared: { tables: { users: {} } } },
    "auth.users.table",
    '"users" is a table of shared already',
  ],
  ["[CF345]", "a name that SQLite has", { in: "shared", table: "a_fts" }, SHARED, "auth.users", "must not end in _fts"],
  ["[CF345]", "hooks", { in: "shared", hooks: {} }, SHARED, "auth.users.hooks", "is not an option"],
  [
    "[CF345]",
    "a rule of inserts",
    { in: "shared", access: { insert: true } },
    SHARED,
    "auth.users.access.insert",
    "the options are read, update",
  ],
  ["[CF345]", "a rule of its own", { in: "shared", access: { red: true } }, SHARED, "auth.users.access.red", "read"],
  [
    "[CF345]",
    "a rule that is no rule",
    { in: "shared", access: { read: 1 } },
    SHARED,
    "auth.users.access.read",
    "a function",
  ],
  [
    "[CF346]",
    "a field of every user",
    { in: "shared", schema: { email: { type: "string" } } },
    SHARED,
    "auth.users.schema.email",
    "is a field of every user",
  ],
  [
    "[CF346]",
    "createdAt",
    { in: "shared", schema: { createdAt: false } },
    SHARED,
    "auth.users.schema.createdAt",
    "is a field of every user",
  ],
  ["[CF346]", "a field without a type", own({}), SHARED, `${FIELD}.type`, "is required"],
  [
    "[CF346]",
    "required without a default",
    own({ type: "string", required: true }),
    SHARED,
    `${FIELD}.required`,
    "needs a default",
  ],
  [
    "[CF346]",
    "a unique default",
    own({ type: "string", unique: true, default: "x" }),
    SHARED,
    `${FIELD}.unique`,
    "cannot have a default",
  ],
  ["[CF346]", "a check", own({ type: "string", check: "1" }), SHARED, `${FIELD}.check`, "could refuse an account"],
  [
    "[CF346]",
    "cascade",
    own({ references: "docs", onDelete: "cascade" }),
    SHARED,
    `${FIELD}.onDelete`,
    "cannot be cascade",
  ],
  [
    "[CF346]",
    "a default reference",
    own({ references: "docs", default: "x" }),
    SHARED,
    `${FIELD}.default`,
    "would need that record",
  ],
  ["[CF347]", "a searched address", { in: "shared", fts: ["email"] }, SHARED, "auth.users.fts", "cannot name email"],
  [
    "[CF347]",
    "a searched address with options",
    { in: "shared", fts: { fields: ["displayName", "email"] } },
    SHARED,
    "auth.users.fts.fields",
    "cannot name email",
  ],
  [
    "[CF347]",
    "an index of addresses",
    { in: "shared", indexes: [{ fields: ["isAnonymous", "email"] }] },
    SHARED,
    "auth.users.indexes.0.fields",
    "cannot name email",
  ],
  [
    "[CF347]",
    "unique names",
    { in: "shared", indexes: [{ fields: ["displayName"], unique: true }] },
    SHARED,
    "auth.users.indexes.0.unique",
    "could refuse an account",
  ],
  [
    "[CF347]",
    "a search of what is no field",
    { in: "shared", fts: ["bio"] },
    SHARED,
    "auth.users.fts.0",
    '"bio" is not a declared field',
  ],
  [
    "[CF355]",
    "a reference without onDelete",
    { in: "shared" },
    referring({ references: "users" }),
    "databases.shared.tables.docs.schema.by.onDelete",
    "setNull, cascade or restrict",
  ],
  [
    "[CF355]",
    "references without onDelete",
    { in: "shared" },
    referring({ type: "references", references: "users" }),
    "databases.shared.tables.docs.schema.by.onDelete",
    "remove or restrict",
  ],
  [
    "[CF355]",
    "a reference to oneself without onDelete",
    own({ references: "users" }),
    referring({ type: "text" }),
    "auth.users.schema.field.onDelete",
    "is required",
  ],
  [
    "[CF355]",
    "a reference by another name",
    { in: "shared", table: "people" },
    referring({ references: { table: "people" } }),
    "databases.shared.tables.docs.schema.by.onDelete",
    "is required",
  ],
  [
    "[CF355]",
    "a reference to another field",
    { in: "shared", schema: { handle: { type: "string", unique: true } } },
    referring({ references: { table: "users", column: "handle" }, onDelete: "setNull" }),
    "databases.shared.tables.docs.schema.by.references.column",
    "must be id",
  ],
  [
    "[CF355]",
    "a required list",
    { in: "shared" },
    referring({ type: "references", references: "users", onDelete: "remove", required: true }),
    "databases.shared.tables.docs.schema.by.onDelete",
    "cannot be remove",
  ],
  [
    "[CF355]",
    "a field in a check",
    { in: "shared" },
    referring({ references: "users", onDelete: "setNull", check: "by <> title" }),
    "databases.shared.tables.docs.schema.by.onDelete",
    "a check names the field",
  ],
];

test.each(CASES)("%s %s", (_rule, _what, users, databases, path, words) => {
  const found = problemsOf(users, databases);
  expect(found.filter((one) => one.startsWith(`${path}: `) && one.includes(words))).toHaveLength(1);
});

test("[CF345] the table is one of its namespace, under its name", () => {
  const users = {
    in: "shared",
    table: "people",
    schema: { bio: { type: "text" }, team: { references: "docs", onDelete: "setNull" } },
    fts: ["displayName", "bio"],
    indexes: [{ fields: ["displayName"] }, { fields: ["bio"], unique: true }],
    migrations: [{ version: 1, description: "none", up: "SELECT 1" }],
    access: { read: true, update: () => true },
  };
  const checked = checkConfig({ auth: { users }, databases: SHARED });
  if ("problems" in checked) throw new Error(JSON.stringify(checked.problems));
  const { tables } = checked.config.databases?.["shared"] ?? {};
  expect(Object.keys(tables ?? {})).toEqual(["docs", "people"]);
  expect(Object.keys(tables?.["people"]?.schema ?? {})).toEqual([
    "displayName",
    "avatarUrl",
    "isAnonymous",
    "email",
    "bio",
    "team",
    "updatedAt",
  ]);
  expect([tables?.["people"]?.isUsers, tables?.["docs"]?.isUsers]).toEqual([true, undefined]);
  expect(usersPlace(checked.config.auth)).toEqual({ namespace: "shared", table: "people" });
  expect(Object.keys(SHARED.shared.tables)).toEqual(["docs"]);
});

test("[CF2] a table cannot say itself that it is that of users", () => {
  expect(problemsOf(undefined, { shared: { tables: { docs: { isUsers: true } } } })[0]).toContain("isUsers");
});
