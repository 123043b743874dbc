import { afterAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { compiler } from "../../scripts/typescript.ts";
import { applyEdits } from "../../src/server/areas/config-editor/edits/apply.ts";
import type { Edit } from "../../src/server/areas/config-editor/edits/edit.ts";
import { blocksOf, TYPESCRIPT_OPTIONS } from "../support/guide.ts";
import { platformCommand, testEnvironment } from "../support/index.ts";
import { type Random, random, testSeed } from "../support/random.ts";
import { type TypedProject, typedProject } from "../support/typed-project.ts";

// Random sequences of edits on configs as people have them.

const ROUNDS = Number(process.env["PLATFORM_FUZZ_ROUNDS"] ?? 1);
const SEQUENCES_A_CONFIG = 6 * ROUNDS;
const EDITS_A_SEQUENCE = 12;
const TIMEOUT_MS = 120_000 * ROUNDS;

const STARTER = join(import.meta.dir, "../../src/server/cli/starter/platform-config.txt");
const configOf = (page: string, index = 0): string =>
  blocksOf(page).filter(({ role }) => role === "platform.config.ts")[index]?.text ?? "";

/** The configs, each with tables of one of its namespaces. */
const CONFIGS: readonly [name: string, text: string, namespace: string, tables: readonly string[]][] = [
  ["starter", readFileSync(STARTER, "utf8"), "shared", ["notes"]],
  ["teams", configOf("teams.md"), "shared", ["workspaces", "members", "tasks"]],
  [
    "tutorial",
    configOf("tutorial.md", blocksOf("tutorial.md").filter(({ role }) => role === "platform.config.ts").length - 1),
    "shared",
    ["reviews"],
  ],
  ["users", configOf("users.md"), "shared", []],
  ["empty", 'import { defineConfig } from "platform";\nexport default defineConfig({});\n', "shared", []],
];

/** A sequence under way: what it has added, which alone it changes and removes. */
interface World {
  rng: Random;
  namespace: string;
  tables: string[];
  /** The fields that were added, with their types, by table. */
  added: Map<string, Map<string, string>>;
  count: number;
}

const SPECS: readonly { [member: string]: unknown; type: string }[] = [
  { type: "string" },
  { type: "string", required: true, default: 'it\'s "quoted"', max: 200 },
  { type: "string", enum: ["a", "b"], default: "a" },
  { type: "text", min: 1 },
  { type: "number", min: -1.5, max: 10 },
  { type: "integer", default: 3 },
  { type: "boolean", required: true, default: false },
  { type: "datetime", onUpdate: "now" },
  { type: "date" },
  { type: "geo" },
  { type: "json" },
];

/** Changes that each field of text can take. */
const CHANGES: readonly { [member: string]: unknown }[] = [
  { max: 100, unique: null, fixed: true },
  { enum: ["a", 'b "quoted"'], default: "a", max: null },
  { required: true, enum: null, default: "none" },
  { required: null, default: null, enum: null },
];

function randomEdit(world: World): Edit | null {
  const { rng, namespace, tables, added } = world;
  world.count++;
  if (tables.length === 0 || rng.chance(0.1)) return addedTable(world);
  const table = rng.pick(tables);
  const at = { namespace, table };
  const fields = added.get(table) ?? new Map<string, string>();
  const ofType = (...types: string[]): string[] =>
    [...fields].flatMap(([name, type]) => (types.includes(type) ? [name] : []));
  const texts = ofType("string");
  switch (rng.below(8)) {
    case 0:
    case 1: {
      const field = `field${world.count}`;
      const referred = { type: rng.pick(["references", "string"]), references: rng.pick(tables) };
      const spec = rng.chance(0.2) ? referred : rng.pick(SPECS);
      added.set(table, new Map(fields).set(field, spec.type));
      return { do: "addField", ...at, field, spec };
    }
    case 2:
      return texts.length === 0 ? null : { do: "setField", ...at, field: rng.pick(texts), changes: rng.pick(CHANGES) };
    case 3: {
      const field = [...fields.keys()].at(-1);
      if (field === undefined) return null;
      return { do: "removeField", ...at, field };
    }
    case 4:
      return texts.length === 0
        ? null
        : { do: "addIndex", ...at, fields: [rng.pick(texts), "createdAt"], unique: rng.chance(0.2) };
    case 5: {
      const searched = ofType("string", "text");
      return searched.length === 0 ? null : { do: "setFts", ...at, fields: searched };
    }
    case 6:
      return { do: "addBucket", bucket: `bucket${world.count}` };
    default:
      return randomRule(world, { at, texts });
  }
}

function addedTable({ rng, namespace, tables, count }: World): Edit {
  if (tables.length === 0 && rng.chance(0.5))
    return { do: "addNamespace", namespace: `space${count}`, instance: rng.chance(0.5) };
  const table = `table${count}`;
  tables.push(table);
  return { do: "addTable", namespace, table };
}

/** Rules as functions, also with a comment and a text that look like code. */
const SOURCES: readonly string[] = [
  "true",
  "(auth) => auth !== null",
  '(auth, record) => record.id !== "}, { // no comment"',
  "(auth) => {\n  // Only those with an address.\n  return auth?.email !== null;\n}",
  'async (auth) => auth?.role === "admin"',
];

function randomRule(
  { rng, tables, added }: World,
  { at, texts }: { at: { namespace: string; table: string }; texts: string[] },
): Edit | null {
  const rule = rng.pick(["read", "insert", "update", "delete"] as const);
  if (rng.chance(0.3)) return { do: "setRule", ...at, rule, source: rng.pick(SOURCES) };
  const template = rng.pick(["public", "nobody", "signedIn", "owner", "members"] as const);
  if (template === "owner") {
    return texts.length === 0 ? null : { do: "setRule", ...at, rule, template, options: { field: rng.pick(texts) } };
  }
  if (template !== "members") return { do: "setRule", ...at, rule, template };
  const table = rng.pick(tables);
  const others = [...(added.get(table) ?? [])].flatMap(([name, type]) => (type === "string" ? [name] : []));
  if (others.length === 0) return null;
  const match = texts.length === 0 ? {} : { [rng.pick(others)]: rng.pick(texts) };
  return { do: "setRule", ...at, rule, template, options: { table, userField: rng.pick(others), match } };
}

/** Applies a sequence of random edits; those that are refused (a field in use) are left out. Returns the text. */
async function edited(text: string, world: World): Promise<{ source: string; edits: Edit[] }> {
  let source = text;
  const edits: Edit[] = [];
  while (edits.length < EDITS_A_SEQUENCE) {
    const edit = randomEdit(world);
    if (edit === null) continue;
    try {
      const applied = await applyEdits(source, [edit]);
      // A rule of this sequence may name the field.
      if (applied.warnings.length > 0) continue;
      source = applied.source;
      edits.push(edit);
      if (edit.do === "removeField") world.added.get(edit.table)?.delete(edit.field);
    } catch (cause) {
      const status = cause instanceof Error && "status" in cause ? cause.status : null;
      if (status !== 400 || !["removeField", "addIndex", "addTable", "setFts", "setRule"].includes(edit.do))
        throw cause;
    }
  }
  return { source, edits };
}

let project: TypedProject | null = null;
afterAll(() => {
  project = null;
});

const seed = testSeed(20_261);
for (const [number, [name, text, namespace, tables]] of CONFIGS.entries()) {
  test(
    `[CE21] ${SEQUENCES_A_CONFIG} random sequences of edits of the config "${name}", from seed ${seed}, compile and are checked`,
    async () => {
      project ??= await typedProject();
      expect(text).toContain("defineConfig");
      const files: string[] = [];
      for (let sequence = 0; sequence < SEQUENCES_A_CONFIG; sequence++) {
        const rng = random(seed + number * 1_000 + sequence);
        const start = text.includes(`${namespace}: {`)
          ? text
          : (await applyEdits(text, [{ do: "addNamespace", namespace }])).source;
        const { source, edits } = await edited(start, {
          rng,
          namespace,
          tables: [...tables],
          added: new Map(),
          count: 0,
        });
        const file = `${name}/${sequence}.config.ts`;
        // The site of the tutorial.
        project.write(`${name}/web/index.html`, "");
        project.write(file, source);
        files.push(file);
        const config = join(project.directory, file);
        const checked = Bun.spawnSync([...platformCommand(), "check", "--config", config], {
          cwd: project.directory,
          env: testEnvironment(),
        });
        const said = checked.exitCode === 0 ? "" : `${checked.stderr.toString()}\n${JSON.stringify(edits)}\n${source}`;
        expect([sequence, said]).toEqual([sequence, ""]);
      }
      const compilerOptions = { ...TYPESCRIPT_OPTIONS, types: [] };
      project.write("tsconfig.json", JSON.stringify({ compilerOptions, files: ["environment.d.ts", ...files] }));
      const { stdout } = Bun.spawnSync([...compiler("typescript"), "-p", project.directory], {
        cwd: project.directory,
      });
      expect(stdout.toString()).toBe("");
    },
    TIMEOUT_MS,
  );
}
