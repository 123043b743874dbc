import { readFileSync } from "node:fs";
import { dirname, extname, resolve } from "node:path";
import { FILES_MAX } from "../limits.ts";

/** The languages of files whose imports are parsed, by file extension. */
export const LOADERS = {
  ".ts": "ts",
  ".tsx": "tsx",
  ".mts": "ts",
  ".cts": "ts",
  ".js": "js",
  ".jsx": "jsx",
  ".mjs": "js",
  ".cjs": "js",
} as const;

type ScannedExtension = keyof typeof LOADERS;

/**
 * Returns a config file and the files that it imports, directly or transitively, without installed packages. The imports of a file
 * that cannot be parsed are missing.
 */
export function importedFiles(configFile: string): string[] {
  const found = new Set([resolve(configFile)]);
  for (const file of found) {
    for (const specifier of importsOf(file)) {
      if (found.size >= FILES_MAX) return [...found];
      const path = resolveImport(specifier, file);
      if (path !== null) found.add(path);
    }
  }
  return [...found];
}

/** Returns the imports of a config, and of the files that it imports, that resolve to no file; each as a sentence. */
export function missingImports(configFile: string): string[] {
  return importedFiles(configFile).flatMap((file) =>
    importsOf(file)
      .filter((specifier) => isFile(specifier) && !resolves(specifier, file))
      .map((specifier) => `Cannot find module '${specifier}' from '${file}'`),
  );
}

const isFile = (specifier: string): boolean => /^(\.|\/|file:)/.test(specifier);

function resolves(specifier: string, importer: string): boolean {
  try {
    Bun.resolveSync(specifier, dirname(importer));
    return true;
  } catch {
    return false;
  }
}

function importsOf(file: string): string[] {
  const extension = extname(file);
  if (!isScanned(extension)) return [];
  try {
    const source = readFileSync(file, "utf8");
    return new Bun.Transpiler({ loader: LOADERS[extension] }).scanImports(source).map((found) => found.path);
  } catch {
    // A missing or broken file is reported when it is loaded, and watched until it is fixed.
    return [];
  }
}

export const isScanned = (extension: string): extension is ScannedExtension => Object.hasOwn(LOADERS, extension);

/** Resolves a relative import; null for packages and missing files. */
function resolveImport(specifier: string, importer: string): string | null {
  if (!isFile(specifier)) return null;
  try {
    const path = Bun.resolveSync(specifier, dirname(importer));
    return path.includes("/node_modules/") ? null : path;
  } catch {
    return null;
  }
}
