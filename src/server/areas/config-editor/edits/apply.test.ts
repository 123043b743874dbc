import { expect, test } from "bun:test";
import { AppError } from "../../../../kernel/errors.ts";
import { diffOf } from "../diff.ts";
import { applyEdits } from "./apply.ts";
import type { Edit } from "./edit.ts";

const TASKS = `import { defineConfig, some } from "platform";

const shared = { references: "tasks" } as const;

export default defineConfig({
  databases: {
    shared: {
      tables: {
        // What is to be done.
        tasks: {
          schema: {
            /* the title */ title: { type: "string", required: true, max: 200 }, // shown first
            // Who does it.
            ownerId: { type: "string" },
            parent: shared,
            note: { type: "text" }
          },
          indexes: [{ fields: ["ownerId"] }],
          fts: { fields: ["title"], tokenize: "porter" },
          access: { read: (auth, task) => task.note === "x", update(auth) { return auth !== null; } },
        },
        members: { schema: { userId: { type: "string" }, taskId: { type: "string" }, role: { type: "string" } } },
      },
      views: { titles: { sql: "SELECT id, title FROM tasks", fields: {} } },
    },
  },
});
`;

const at = { namespace: "shared", table: "tasks" } as const;

/** Returns the lines that edits add and remove. */
async function changed(edits: Edit[], text = TASKS): Promise<string[]> {
  const { source } = await applyEdits(text, edits);
  const [before, after] = [text.split("\n"), source.split("\n")];
  const removed = before.filter((line) => !after.includes(line)).map((line) => `-${line}`);
  return [...removed, ...after.filter((line) => !before.includes(line)).map((line) => `+${line}`)];
}

async function refused(edits: Edit[], text = TASKS): Promise<[status: number, data: object]> {
  const cause = await applyEdits(text, edits).catch((thrown: unknown) => thrown);
  if (!(cause instanceof AppError)) throw cause;
  const data = Object.entries(cause.data ?? {}).map(([name, { message }]) => [name, message]);
  return [cause.status, Object.fromEntries(data)];
}

test("[CE4] a field goes behind the last one, and everything else stays as it is", async () => {
  const edits: Edit[] = [{ do: "addField", ...at, field: "due", spec: { type: "date" } }];
  expect(await changed(edits)).toEqual([
    '-            note: { type: "text" }',
    '+            note: { type: "text" },',
    '+            due: { type: "date" }',
  ]);
});

test("[CE4] a removed member takes its comma and its line's comment with it, and no other comment", async () => {
  const free = TASKS.replace('fts: { fields: ["title"], tokenize: "porter" },', "").replace("id, title", "id");
  const { source } = await applyEdits(free, [{ do: "removeField", ...at, field: "title" }]);
  expect(source).not.toContain("shown first");
  expect(source).toContain("// Who does it.");
  expect(source).toContain("// What is to be done.");
});

test("[CE4] a member of an object on one line stays there while the line is short", async () => {
  const short: Edit[] = [{ do: "setField", ...at, field: "ownerId", changes: { required: true } }];
  expect(await changed(short)).toEqual([
    '-            ownerId: { type: "string" },',
    '+            ownerId: { type: "string", required: true },',
  ]);
  const { source } = await applyEdits(TASKS, [
    {
      do: "addField",
      namespace: "shared",
      table: "members",
      field: "since",
      spec: { type: "datetime", required: true },
    },
  ]);
  expect(source).toContain(`        members: { schema: {
          userId: { type: "string" },
          taskId: { type: "string" },
          role: { type: "string" },
          since: { type: "datetime", required: true },
        } },`);
});

test("[CE4] [CE10] tables, namespaces and buckets are added without access, with the indentation that is there", async () => {
  const tabbed = "export default {\n\tdatabases: {\n\t\tshared: {\n\t\t\ttables: {},\n\t\t},\n\t},\n};\n";
  const { source } = await applyEdits(tabbed, [
    { do: "addTable", namespace: "shared", table: "posts" },
    { do: "addBucket", bucket: "pictures" },
    { do: "addNamespace", namespace: "teams", instance: true },
  ]);
  expect(source).toContain("\t\t\t\tposts: {\n\t\t\t\t\tschema: {},\n\t\t\t\t\taccess: {},\n\t\t\t\t},\n");
  expect(source).toContain("\tstorage: {\n");
  expect(source).toContain("\t\tteams: {\n");
});

test("[CE8] [CE11] edits that name what is not there, or is there already, name the edit and its member", async () => {
  const cases: [edit: Edit, member: string, words: string][] = [
    [{ do: "addTable", namespace: "nope", table: "posts" }, "namespace", 'no namespace "nope"'],
    [{ do: "addTable", ...at }, "table", "already"],
    [{ do: "addTable", namespace: "shared", table: "titles" }, "table", "already"],
    [{ do: "addTable", namespace: "shared", table: "9" }, "table", "must be a name"],
    [{ do: "addNamespace", namespace: "shared" }, "namespace", "already"],
    [{ do: "addNamespace", namespace: "a/b" }, "namespace", "must be a name"],
    [{ do: "addField", ...at, table: "nope", field: "a", spec: { type: "string" } }, "table", 'no table "nope"'],
    [{ do: "addField", ...at, field: "title", spec: { type: "string" } }, "field", "already"],
    [{ do: "addField", ...at, field: "id", spec: { type: "string" } }, "field", "automatically"],
    [{ do: "addField", ...at, field: "a", spec: { type: "strin" } }, "spec.type", "string"],
    [
      { do: "addField", ...at, field: "a", spec: { type: "string", min: 3, max: 2 } },
      "spec.min",
      "must not be above max",
    ],
    [{ do: "setField", ...at, field: "nope", changes: { max: 1 } }, "field", 'no field "nope"'],
    [{ do: "setField", ...at, field: "title", changes: { min: 300 } }, "changes.min", "must not be above max"],
    [{ do: "setField", ...at, field: "title", changes: {} }, "changes", "at least one"],
    [{ do: "removeField", ...at, field: "nope" }, "field", 'no field "nope"'],
    [{ do: "addIndex", ...at, fields: ["ownerId"] }, "fields", "already"],
    [{ do: "addIndex", ...at, fields: ["nope"] }, "fields.0", 'no field "nope"'],
    [{ do: "addIndex", ...at, fields: [] }, "fields", "at least one"],
    [{ do: "addIndex", ...at, fields: ["note", "note"] }, "fields.1", "twice"],
    [{ do: "setFts", ...at, fields: ["nope"] }, "fields.0", 'no field "nope"'],
    [{ do: "setRule", ...at, rule: "read" }, "template", "a template or a source"],
    [{ do: "setRule", ...at, rule: "read", template: "public", source: "true" }, "template", "not both"],
    [{ do: "setRule", ...at, rule: "read", template: "owner" }, "options.field", "must name"],
    [
      { do: "setRule", ...at, rule: "read", template: "owner", options: { field: "nope" } },
      "options.field",
      'no field "nope"',
    ],
    [{ do: "setRule", ...at, rule: "read", template: "members" }, "options.table", "must name"],
    [
      { do: "setRule", ...at, rule: "read", template: "owner", options: { field: "createdAt" } },
      "options.field",
      "for ids of users",
    ],
    [
      {
        do: "setRule",
        ...at,
        rule: "read",
        template: "members",
        options: { table: "members", userField: "userId", match: { taskId: "createdAt" } },
      },
      "options.match.taskId",
      "of different types",
    ],
    [
      { do: "setRule", ...at, rule: "read", template: "members", options: { table: "members", userField: "nope" } },
      "options.userField",
      'no field "nope"',
    ],
  ];
  const added: Edit = { do: "addBucket", bucket: "first" };
  for (const [edit, member, words] of cases) {
    const [status, data] = await refused([added, edit]);
    expect([status, data]).toEqual([400, { [`edits.1.${member}`]: expect.stringContaining(words) }]);
  }
});

test("[CE9] what is not written in place is refused with its path and line", async () => {
  const cases: [text: string, edit: Edit, words: string][] = [
    [
      TASKS,
      { do: "setField", ...at, field: "parent", changes: { required: true } },
      "tasks.schema.parent is the variable shared, in line 15",
    ],
    [
      "const tables = {};\nexport default { databases: { shared: { tables } } };",
      { do: "addTable", namespace: "shared", table: "a" },
      "tables is a variable, in line 2",
    ],
    [
      "const all = {};\nexport default { databases: { ...all } };",
      { do: "addNamespace", namespace: "a" },
      "a spread brings, in line 2",
    ],
    [
      'export default { databases: { ["a" + 1]: {} } };',
      { do: "addNamespace", namespace: "a" },
      "computed member, in line 1",
    ],
    ["export default make();", { do: "addBucket", bucket: "a" }, "default export is not defineConfig"],
    ["export const config = {};", { do: "addBucket", bucket: "a" }, "no default export"],
    ["export default {", { do: "addBucket", bucket: "a" }, "syntax error"],
  ];
  for (const [text, edit, words] of cases) {
    const [status, data] = await refused([edit], text);
    expect([status, data]).toEqual([400, { "edits.0": expect.stringContaining(words) }]);
  }
});

test("[CE9] a config in a constant, with type assertions and in parentheses, is edited", async () => {
  for (const text of [
    "const config = { databases: {} } satisfies object;\nexport default config;",
    'import { defineConfig } from "platform";\nconst config = defineConfig(({ databases: {} }) as const);\nexport default config;',
  ]) {
    const { source } = await applyEdits(text, [{ do: "addNamespace", namespace: "shared" }]);
    expect(source).toContain("shared: {");
  }
});

test("[CE12] a field that is used is refused with its use, and rules that name it are warned of", async () => {
  expect(await refused([{ do: "removeField", ...at, field: "ownerId" }])).toEqual([
    400,
    { "edits.0.field": '"ownerId" cannot be removed: databases.shared.tables.tasks.indexes uses it' },
  ]);
  const unsearched = TASKS.replace('fts: { fields: ["title"], tokenize: "porter" },', "");
  expect(await refused([{ do: "removeField", ...at, field: "title" }])).toMatchObject([
    400,
    { "edits.0.field": expect.stringContaining("tasks.fts uses it") },
  ]);
  expect(await refused([{ do: "removeField", ...at, field: "title" }], unsearched)).toMatchObject([
    400,
    { "edits.0.field": expect.stringContaining("views.titles uses it") },
  ]);
  const referred = TASKS.replace(
    'taskId: { type: "string" }',
    'taskId: { references: { table: "tasks", column: "note" } }',
  );
  expect(await refused([{ do: "removeField", ...at, field: "note" }], referred)).toMatchObject([
    400,
    { "edits.0.field": expect.stringContaining("members.schema.taskId uses it") },
  ]);
  const { warnings, migration, source } = await applyEdits(TASKS, [{ do: "removeField", ...at, field: "note" }]);
  expect(warnings).toEqual(['databases.shared.tables.tasks.access names "note" in line 20']);
  expect(migration).toBe('ALTER TABLE "tasks" DROP COLUMN "note"');
  expect(source).toContain(`version: 1, description: "note is removed", up: 'ALTER TABLE "tasks" DROP COLUMN "note"'`);
});

test("[CE12] a migration gets the version behind the last one", async () => {
  const migrated = TASKS.replace(
    "fts: {",
    'migrations: [{ version: 4, description: "x", up: "SELECT 1" }],\n          fts: {',
  );
  const { source } = await applyEdits(migrated, [{ do: "removeField", ...at, field: "note" }]);
  expect(source).toContain("version: 5");
  const computed = migrated.replace("version: 4", "version: 2 + 2");
  expect((await refused([{ do: "removeField", ...at, field: "note" }], computed))[1]).toEqual({
    "edits.0": expect.stringContaining("version is not written in place"),
  });
});

test("[CE13] the search keeps its tokenizer, and ends without fields", async () => {
  expect(await changed([{ do: "setFts", ...at, fields: ["title", "note"] }])).toEqual([
    '-          fts: { fields: ["title"], tokenize: "porter" },',
    '+          fts: { fields: ["title", "note"], tokenize: "porter" },',
  ]);
  expect((await applyEdits(TASKS, [{ do: "setFts", ...at, fields: [] }])).source).not.toContain("porter");
});

test("[CE14] templates replace rules of every form, and import what they need", async () => {
  const rule = async (edit: Omit<Extract<Edit, { do: "setRule" }>, "do" | "namespace" | "table">): Promise<string> => {
    const { source } = await applyEdits(TASKS, [{ do: "setRule", ...at, ...edit }]);
    return source.split("\n").find((line) => line.includes("access:")) ?? "";
  };
  expect(await rule({ rule: "update", template: "public" })).toContain("update: true }");
  expect(await rule({ rule: "read", template: "signedIn" })).toContain("read: (auth) => auth !== null,");
  expect(await rule({ rule: "update", template: "owner", options: { field: "ownerId" } })).toContain(
    "update: (auth, record, next) => auth !== null && record.ownerId === auth.id && next.ownerId === auth.id",
  );
  const members: Edit = {
    do: "setRule",
    ...at,
    rule: "read",
    template: "members",
    options: { table: "members", userField: "userId", match: { taskId: "id" }, roleField: "role", roles: ["owner"] },
  };
  const { source } = await applyEdits(TASKS, [members]);
  expect(source).toContain('import { defineConfig, some, field } from "platform";');
  expect(source).toContain(
    'read: (auth) => auth !== null && some("members", [["taskId", "==", field("id")], ["userId", "==", auth.id], ["role", "in", ["owner"]]])',
  );
  const shadowed = TASKS.replace("const shared", "const field = 1;\nconst shared");
  expect((await applyEdits(shadowed, [members])).source).toContain("field as fieldOf");
});

test("[CE15] only a constant or one function gets into the config", async () => {
  const rule = (source: string): Edit => ({ do: "setRule", ...at, rule: "read", source });
  for (const source of [
    "auth",
    "true, x: 1",
    "true }",
    "(() => true)()",
    "",
    "true; false",
    "import('x')",
    "`true`",
    "null",
  ]) {
    const [status, data] = await refused([rule(source)]);
    expect([source, status, Object.keys(data)]).toEqual([source, 400, ["edits.0.source"]]);
  }
  const commented = await applyEdits(TASKS, [rule("(auth) => auth !== null // and nobody else")]);
  expect(commented.source).toContain("read: (auth) => auth !== null,");
  expect(commented.problems).toEqual([]);
  const { problems } = await applyEdits(TASKS, [rule("(auth, task) => auth?.rolle === 'x' && task.ownr === auth.id")]);
  expect(problems.map(({ message }) => message)).toEqual([
    'reads "rolle", which auth does not have',
    'reads "ownr", which the record does not have',
  ]);
});

test("[CE16] the difference hides the texts of secret members, also those of fallbacks and templates", async () => {
  const text = `export default {
  auth: { mail: { smtp: { host: "smtp.example.com", pass: process.env["PASS"] ?? "hunter2" } } },
  push: { fcm: { private_key: \`MIIE\` } },
  storage: { buckets: {} },
};
`;
  const { source } = await applyEdits(text, [{ do: "addBucket", bucket: "pictures" }]);
  const diff = diffOf("platform.config.ts", text, source);
  expect(diff).toContain('process.env["PASS"] ?? "[hidden]"');
  expect(diff).toContain('private_key: "[hidden]"');
  expect(diff).toContain("smtp.example.com");
  for (const secret of ["hunter2", "MIIE"]) expect(diff).not.toContain(secret);
  expect(diffOf("c.ts", "export default { a: 'x'", "export default { a: 'y'")).toBe("");
});
