import { join, resolve } from "node:path";
import { generateSQLiteDrizzleJson, generateSQLiteMigration } from "drizzle-kit/api";
import { systemTables } from "../schema/index.ts";

// `npm run migrations -- NAME`: compares schema/*.ts with the result of system.db's steps (schema/migrations/system/snapshot.json)
// and writes the next step. It prints the import for schema/migrations/index.ts.

const DIGITS = 4;
const folder = resolve(import.meta.dir, "../schema/migrations/system");
const snapshotFile = Bun.file(join(folder, "snapshot.json"));

/** Adapts a statement. Each step runs in a transaction, with foreign keys off (src/server/db/migrations.ts), and every table is STRICT. */
function tidy(statement: string): string | null {
  if (/^PRAGMA foreign_keys/i.test(statement)) return null;
  return statement
    .replaceAll("`", '"')
    .replace(/^(CREATE TABLE [^;]*\))(?=;)/s, "$1 STRICT")
    .trim();
}

const [name] = process.argv.slice(2);
if (name === undefined || !/^[a-z0-9_]+$/.test(name)) {
  console.error("usage: npm run migrations -- NAME   (lower-case letters, digits and _)");
  process.exit(1);
}
const before = await snapshotFile.json();
const after = await generateSQLiteDrizzleJson(systemTables, before.id);
const statements = (await generateSQLiteMigration(before, after)).map(tidy).filter((statement) => statement !== null);
if (statements.length === 0) {
  console.log("schema/*.ts says what the steps make: there is nothing to write");
  process.exit(0);
}
const steps = [...new Bun.Glob("*.sql").scanSync(folder)];
const number = steps.length + 1;
const file = `${String(number).padStart(DIGITS, "0")}_${name}.sql`;
await Bun.write(join(folder, file), `-- Why this step is needed.\n\n${statements.join("\n")}\n`);
await Bun.write(snapshotFile, `${JSON.stringify(after, null, 2)}\n`);
console.log(
  `schema/migrations/system/${file} is written. Say in its first line why, and add to schema/migrations/index.ts:`,
);
console.log(`import system${number} from "./system/${file}" with { type: "text" };`);
