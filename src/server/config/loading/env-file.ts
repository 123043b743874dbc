import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parseEnv } from "node:util";
import { codeOf, reasonOf } from "../../../kernel/errors.ts";
import { ConfigError } from "../problems.ts";
import { ownProduct } from "./product.ts";

const ENV_FILE = ".env";

/**
 * Returns the path of the file whose variables a command adds to the environment: `.env` beside the config, and for an executable
 * of `platform build`, which contains its config, beside the executable.
 */
export function envFileOf(configFile: string): string {
  return join(ownProduct() === null ? dirname(resolve(configFile)) : dirname(process.execPath), ENV_FILE);
}

/**
 * Adds the variables of a file to the environment; those already set, even to an empty text, keep their values. A missing file
 * counts as empty. Errors: `ConfigError` for a file that cannot be read.
 */
export function loadEnvFile(file: string, environment: Record<string, string | undefined>): void {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    if (/^ENO(?:ENT|TDIR)$/.test(codeOf(cause))) return;
    throw new ConfigError(`The variables of ${file} cannot be read: ${reasonOf(cause)}`, [], cause);
  }
  for (const [name, value] of Object.entries(parseEnv(text))) environment[name] ??= value;
}
