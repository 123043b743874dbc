import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { temporaryDirectory } from "./platform.ts";

const ROOT = resolve(import.meta.dir, "../..");
const COPIED = ["src", "schema", "package.json", "tsconfig.json"];

/** A place in a source file, by its text. */
export interface SourceChange {
  file: string;
  from: string;
  to: string;
}

/**
 * Copies the sources and changes them, so that a test can show that it fails without a rule: the program itself has no switch. Returns
 * the command that runs them. Errors: a text is not there, or more than once.
 */
export function changedSource(changes: readonly SourceChange[]): string[] {
  const directory = copiedSource(COPIED);
  changeSource(directory, changes);
  return [process.execPath, "--no-env-file", join(directory, "src/main.ts")];
}

/** Copies these files and folders of the repository, with the packages that it has installed. Returns the copy's directory. */
export function copiedSource(names: readonly string[]): string {
  const directory = temporaryDirectory();
  for (const name of names) cpSync(join(ROOT, name), join(directory, name), { recursive: true });
  symlinkSync(join(ROOT, "node_modules"), join(directory, "node_modules"));
  return directory;
}

/** Changes files of a copy. Errors: a text is not there, or more than once. */
export function changeSource(directory: string, changes: readonly SourceChange[]): void {
  for (const { file, from, to } of changes) {
    const path = join(directory, file);
    const parts = readFileSync(path, "utf8").split(from);
    if (parts.length !== 2) throw new Error(`${file} has the text ${parts.length - 1} times: ${from}`);
    writeFileSync(path, parts.join(to));
  }
}
