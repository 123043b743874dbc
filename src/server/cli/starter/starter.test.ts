import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { DECLARATIONS_FILE, generateDeclarations } from "../../../../scripts/declarations.ts";
import { compiler, OLDER_TYPESCRIPTS } from "../../../../scripts/typescript.ts";

const starter = import.meta.dir;
const root = mkdtempSync(join(tmpdir(), "platform-starter-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const FILES = {
  "platform-config.txt": "platform.config.ts",
  "platform-declarations.txt": "platform.d.ts",
  "tsconfig.txt": "tsconfig.json",
  "gitignore.txt": ".gitignore",
};

function typesOf(
  change: (config: string) => string,
  command: readonly string[] = compiler(),
): { exitCode: number; output: string } {
  for (const [from, to] of Object.entries(FILES)) {
    const text = readFileSync(join(starter, from), "utf8");
    writeFileSync(join(root, to), to === "platform.config.ts" ? change(text) : text);
  }
  const { exitCode, stdout } = Bun.spawnSync([...command, "-p", root]);
  return { exitCode, output: stdout.toString() };
}

test("[CL10] the declarations match the sources (bun scripts/declarations.ts writes them)", () => {
  expect(readFileSync(DECLARATIONS_FILE, "utf8")).toBe(generateDeclarations());
});

test("[CL9] TypeScript accepts the starter with nothing else installed", () => {
  expect(typesOf((config) => config)).toEqual({ exitCode: 0, output: "" });
});

test("[CL9] secrets come from the environment, with and without the types of Node", () => {
  const secret = (config: string) =>
    config.replace("export default", 'export const secret: string = process.env.SECRET ?? "";\nexport default');
  expect(typesOf(secret)).toEqual({ exitCode: 0, output: "" });
  symlinkSync(resolve(import.meta.dir, "../../../../node_modules"), join(root, "node_modules"));
  const types = ["node", "bun-types"].map((name) => `/// <reference types="${name}" />\n`).join("");
  expect(typesOf((config) => types + secret(config))).toEqual({ exitCode: 0, output: "" });
});

test("[CL9] the guide's own config compiles, and pages in TSX are checked", () => {
  const guide = readFileSync(resolve(starter, "../../../../docs/functions.md"), "utf8");
  const config = /```ts platform\.config\.ts\n(.*?)```/s.exec(guide)?.[1] ?? "";
  expect(config).toContain('from "node:crypto"');
  expect(typesOf(() => config)).toEqual({ exitCode: 0, output: "" });
  for (const name of ["node", "bun-types"]) {
    expect(typesOf(() => `/// <reference types="${name}" />\n${config}`)).toEqual({ exitCode: 0, output: "" });
  }
  writeFileSync(join(root, "page.tsx"), "export const Page = () => <p>{missing}</p>;");
  expect(typesOf(() => config).output).toContain("Cannot find name 'missing'");
  rmSync(join(root, "page.tsx"));
});

test("[CL9] TypeScript reports a wrong field of a rule's record", () => {
  const { exitCode, output } = typesOf((config) =>
    config.replace("record.ownerId === auth?.id,", "record.owner === auth?.id,"),
  );
  expect(exitCode).not.toBe(0);
  expect(output).toContain("Property 'owner' does not exist");
});

/** A config that uses the types of its table's fields in rules and hooks. */
const TYPED = `import { type Auth, defineConfig, type Filter, type Rule, type UpdateRule } from "platform";

const mine = (auth: Auth | null): Filter => [["ownerId", "==", auth?.id ?? ""]];
const named: Rule<{ name: string }> = (auth, record, { table }) =>
  auth !== null && record.name !== "" && [["name", "!=", String(table("members").get(auth.id)?.role)]];
const kept: UpdateRule<{ name: string }> = (_auth, record, next) => record.name === next.name;

export default defineConfig({
  databases: {
    shared: {
      tables: {
        notes: {
          schema: {
            title: { type: "string", required: true, min: 1 },
            points: { type: "integer", default: 3 },
            kind: { type: "string", enum: ["a", "b"], required: true },
            // Stored values may be others, so it is compared as any text.
            former: { type: "string", enum: ["x"], required: true, validate: "new" },
            createdAt: false,
          },
          access: {
            read: (_auth, note) => note.title.length > 3 && note.kind === "a",
            insert: (_auth, note) => note.former === "y" || note.points === null || note.points > 3,
            update: (_auth, note, next) => next.title.startsWith(note.title) && next.updatedAt !== "",
          },
          hooks: {
            beforeInsert: (_auth, note) => ({ title: note.title.toUpperCase(), points: null }),
            afterInsert: async (_auth, note, app) => {
              const stored = await app.db("shared").table("notes").get(note.id);
              const seen = await app.as(null).db("shared").table("notes").get(note.id);
              if (stored?.points === 3 && seen?.points === 3) app.table("members").where("role", "==", "owner").exists();
            },
          },
        },
        members: {
          access: { read: (auth, member, { table }) => table("members").get(auth?.id ?? "")?.role === member.role },
          schema: { role: { type: "string", enum: ["owner", "editor"], required: true } },
        },
        free: { access: { read: (_auth, record) => record["public"] === true } },
        cats: {
          schema: { ownerId: { type: "string" }, name: { type: "string", required: true } },
          access: { read: mine, insert: named, update: mine, delete: mine },
        },
        dogs: {
          schema: { name: { type: "text", required: true }, ownerId: { type: "string", required: true } },
          access: { read: named, insert: mine, update: kept, delete: mine },
        },
        docs: {
          schema: {
            cover: { type: "file", bucket: "files", max: 1000, types: ["image/*"] },
            pages: { type: "file", bucket: "files", many: 5 },
          },
          access: {
            read: (_auth, doc) => doc.cover?.type === "image/png" && doc.pages.every(({ size }) => size > 1),
            insert: () => [["cover.size", "<", 100], ["cover", "!=", null]],
          },
        },
        bare: {},
        fieldless: { schema: {}, access: {}, hooks: {}, indexes: [], migrations: [] },
      },
    },
    empty: { tables: {} },
    closed: { instance: true, access: {}, tables: {} },
  },
  storage: { buckets: { files: {} } },
  rooms: { quiet: {}, silent: { access: {}, actions: {} } },
  triggers: {},
  webhooks: {},
  jobs: {},
  cron: {},
  realtime: { access: {} },
  auth: { oauth: {}, hooks: {} },
});
`;

const WRONG: readonly (readonly [right: string, wrong: string, error: string | RegExp])[] = [
  ["note.points === null || ", "", "'note.points' is possibly 'null'"],
  ['note.kind === "a"', 'note.kind === "c"', "This comparison appears to be unintentional"],
  ['next.updatedAt !== ""', 'next.createdAt !== ""', "Property 'createdAt' does not exist"],
  [
    'table("members").get(auth?.id ?? "")',
    'table("member").get(auth?.id ?? "")',
    `Argument of type '"member"' is not assignable`,
  ],
  ['where("role", "==", "owner")', 'where("rule", "==", "owner")', `Argument of type '"rule"' is not assignable`],
  ["doc.cover?.type", "doc.cover.type", "'doc.cover' is possibly 'null'"],
  ["({ size }) => size > 1", "({ length }) => length > 1", "Property 'length' does not exist"],
  ["note.title.length", "note.name.length", "Property 'name' does not exist"],
];

/** Mistakes in a function with a declared return type: each is reported once, in one line, where it is made. */
const IN_HELPERS: readonly (readonly [right: string, wrong: string, error: string])[] = [
  ['[["ownerId", "==",', '[["ownerId", "=",', `Type '"="' is not assignable to type 'FilterOperator'.`],
  [
    'record.name !== "" &&',
    'record.nam !== "" &&',
    "Property 'nam' does not exist on type '{ name: string; }'. Did you mean 'name'?",
  ],
];

/** Functions that are no rules, for each of the rules of a table, and what they return. */
const NO_RULES: readonly (readonly [rule: string, helper: string, returned: string])[] = [
  ["read", '(auth: Auth | null) => [["ownerId", "==", auth?.id ?? ""]]', "string[][]"],
  ["insert", "(auth: Auth | null) => ({ ownerId: auth?.id })", "{ ownerId: string | undefined; }"],
  ["update", "async () => 1", "Promise<number>"],
  ["delete", '() => "yes"', "string"],
];

for (const name of ["typescript", ...OLDER_TYPESCRIPTS] as const) {
  test(`[CL114, CF210, CF211, CF213, CF331] ${name}: the starter compiles, and rules and hooks know their fields`, () => {
    expect(typesOf((config) => config, compiler(name))).toEqual({ exitCode: 0, output: "" });
    expect(typesOf(() => TYPED, compiler(name))).toEqual({ exitCode: 0, output: "" });
    const wrong = WRONG.reduce((config, [right, replacement]) => config.replace(right, replacement), TYPED);
    const { exitCode, output } = typesOf(() => wrong, compiler(name));
    expect(exitCode).not.toBe(0);
    for (const [, , error] of WRONG) expect(output).toMatch(error);
  });

  test(`[CF212] ${name}: a mistake in a helper that tables share is one line`, () => {
    for (const [right, replacement, error] of IN_HELPERS) {
      const { output } = typesOf(() => TYPED.replace(right, replacement), compiler(name));
      expect(output).toContain(error);
      expect(output.trim().split("\n")).toHaveLength(1);
    }
  });

  test(`[CF376] ${name}: a function that is no rule is named with what it returns, in three lines`, () => {
    const helpers = NO_RULES.map(([rule, helper]) => `const ${rule} = ${helper};\n`).join("");
    const config = TYPED.replace("export default", `${helpers}export default`)
      .replace(
        "access: { read: mine, insert: named, update: mine, delete: mine }",
        "access: { read, insert, update, delete: remove }",
      )
      .replace("const delete =", "const remove =")
      .replace("access: { read: named,", 'access: { read: () => [["owner", "==", "x"]],');
    const { output } = typesOf(() => config, compiler(name));
    const lines = output.trim().split("\n");
    const returned = [...NO_RULES.map(([, , type]) => type), '["owner", "==", string][]'];
    expect(lines).toHaveLength(3 * returned.length);
    for (const [index, type] of returned.entries()) {
      expect(lines[3 * index]).toContain("platform.config.ts(");
      expect(lines[3 * index + 2]).toContain(`'${type}'`);
      expect(lines[3 * index + 2]).toContain("type 'BooleanOrFilterOfItsTable'");
    }
  });
}
