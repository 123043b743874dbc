import type { Database } from "bun:sqlite";
import type { FileLayout } from "../../../schema/migrations/index.ts";
import { reasonOf } from "../../kernel/errors.ts";
import { copyBeforeUpgrade } from "./files/upgrade-copy.ts";
import { type Commits, unnumbered } from "./writer/commit-gate.ts";

/** Values of the `{{name}}` placeholders in a layout's steps. They come from the config, never from a request. */
type StepValues = Readonly<Record<string, string | number>>;

/** Returns a function for `OpenOptions.migrate` that creates the server's tables, or upgrades them. Errors: see `migrateFile`. */
export function layOut(layout: FileLayout, values: StepValues = {}): (sqlite: Database, commits?: Commits) => void {
  return (sqlite, commits = unnumbered(sqlite)) => migrateFile(sqlite, { layout, values, commits });
}

/**
 * Upgrades the server's tables in a file: runs the missing steps in order, in one transaction with the new version
 * (`PRAGMA user_version`), so that a file is always one of a release. A file with tables is copied before (`NAME.db.vVERSION`). A
 * file that is up to date costs one query.
 * Foreign keys are off meanwhile, because a step that rebuilds a table would delete the rows that refer to it; they are checked
 * after each step. [DB31] [DB300]
 * Errors: a step fails; the file has a version that is newer than this executable supports.
 */
function migrateFile(
  sqlite: Database,
  { layout, values, commits }: { layout: FileLayout; values: StepValues; commits: Commits },
): void {
  const version = readVersion(sqlite);
  assertKnown(sqlite, layout, version);
  if (version === layout.steps.length) return;
  const isNew = isEmpty(sqlite);
  const present = version === 0 && !isNew ? readNumber(sqlite, layout.unversioned) : version;
  if (!isNew) commits.outsideWal(() => copyBeforeUpgrade(sqlite, present));
  sqlite.run("PRAGMA foreign_keys = OFF");
  try {
    const upgrade = (): void => {
      for (let next = present + 1; next <= layout.steps.length; next++) {
        applyStep(sqlite, { layout, version: next, sql: fillIn(layout.steps[next - 1] ?? "", values) });
      }
      sqlite.run(`PRAGMA user_version = ${layout.steps.length}`);
    };
    commits.transaction(upgrade);
  } finally {
    sqlite.run("PRAGMA foreign_keys = ON");
  }
}

/** Reports whether all steps of this executable, and no others, have run on a file. Does not change the file. */
export function isUpToDate(sqlite: Database, layout: FileLayout): boolean {
  return readVersion(sqlite) === layout.steps.length;
}

const isEmpty = (sqlite: Database): boolean =>
  readNumber(sqlite, "SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)") === 1;

const readVersion = (sqlite: Database): number => readNumber(sqlite, "PRAGMA user_version");

/** Returns the single number that `sql` selects. */
function readNumber(sqlite: Database, sql: string): number {
  const statement = sqlite.prepare<Record<string, number>, []>(sql);
  const [value = 0] = Object.values(statement.get() ?? {});
  statement.finalize();
  return value;
}

/** Refuses a file whose version is newer than this executable supports. */
export function requireKnownVersion(sqlite: Database, layout: FileLayout): void {
  assertKnown(sqlite, layout, readVersion(sqlite));
}

/** Thrown for a file whose version is newer than this executable supports. */
export class NewerFileError extends Error {}

function assertKnown(sqlite: Database, { name, steps }: FileLayout, version: number): void {
  if (version <= steps.length) return;
  throw new NewerFileError(
    `${sqlite.filename} has version ${version} of the ${name} tables, and this executable knows versions up to ` +
      `${steps.length}: a newer executable has upgraded the file. Start that one, or restore a backup from before`,
  );
}

function fillIn(step: string, values: StepValues): string {
  return step.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`A step of a migration has no value for ${name}`);
    return String(value);
  });
}

function applyStep(sqlite: Database, step: { layout: FileLayout; version: number; sql: string }): void {
  const { layout, version, sql } = step;
  try {
    sqlite.run(sql);
    const broken = readNumber(sqlite, "SELECT count(*) FROM pragma_foreign_key_check");
    if (broken > 0) throw new Error(`${broken} rows refer to rows that do not exist`);
  } catch (error) {
    const message = reasonOf(error);
    throw new Error(`Step ${version} of the ${layout.name} tables of ${sqlite.filename} failed: ${message}`, {
      cause: error,
    });
  }
}
