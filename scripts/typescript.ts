import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dir, "..");

/** The older versions against which the declarations of `platform init` are tested. */
export const OLDER_TYPESCRIPTS = ["typescript-5.4", "typescript-5.9", "typescript-6"] as const;

/**
 * Returns the command of a TypeScript compiler, from its package: several are installed, and only one of them can be
 * `node_modules/.bin/tsc`.
 */
export function compiler(name: "typescript" | (typeof OLDER_TYPESCRIPTS)[number] = "typescript"): string[] {
  return [process.execPath, join(ROOT, "node_modules", name, "bin/tsc")];
}
