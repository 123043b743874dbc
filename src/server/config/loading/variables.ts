import { readFileSync } from "node:fs";
import { extname } from "node:path";
import { importedFiles, isScanned, LOADERS } from "./imported-files.ts";

const ENVIRONMENT = String.raw`(?:process|Bun|import\.meta)\??\.env`;
const MEMBER = new RegExp(String.raw`\b${ENVIRONMENT}(?:\??\.([A-Za-z_$][\w$]*)|(?:\?\.)?\[(["'])([^"'\\]+)\2\])`, "g");
const DESTRUCTURED = new RegExp(String.raw`\{([^{}]*)\}\s*=\s*${ENVIRONMENT}(?![\w$.[?])`, "g");
const PROPERTY = /(?:^|,)\s*(?:([A-Za-z_$][\w$]*)|(["'])([^"'\\]+)\2)/g;

/** Variables that are set when a program is started, and rarely. */
const IGNORED = new Set(["NODE_ENV"]);

/**
 * Returns the names of the variables that a config and the files that it imports read as members of `process.env`, `Bun.env` or
 * `import.meta.env`, in alphabetical order; not those that installed packages read.
 */
export function variablesOf(configFile: string): string[] {
  return [...new Set(importedFiles(configFile).flatMap(variablesOfFile))].filter((name) => !IGNORED.has(name)).sort();
}

function variablesOfFile(file: string): string[] {
  const extension = extname(file);
  if (!isScanned(extension)) return [];
  let source: string;
  try {
    // Transpiling removes comments and types.
    source = new Bun.Transpiler({ loader: LOADERS[extension] }).transformSync(readFileSync(file, "utf8"));
  } catch {
    // A missing or broken file is reported when it is loaded.
    return [];
  }
  const members = [...source.matchAll(MEMBER)].map(([, name, , quoted]) => name ?? quoted ?? "");
  const destructured = [...source.matchAll(DESTRUCTURED)].flatMap(([, pattern = ""]) =>
    [...pattern.matchAll(PROPERTY)].map(([, name, , quoted]) => name ?? quoted ?? ""),
  );
  return [...members, ...destructured];
}
