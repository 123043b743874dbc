import { existsSync } from "node:fs";
import { join } from "node:path";
import type { ConfigProblem } from "../problems.ts";
import { SERVER_PATHS } from "../server-paths.ts";

/** Warns about files at the server's own paths, which are never served. */
export function siteWarnings(directory: string): ConfigProblem[] {
  return SERVER_PATHS.filter((name) => existsSync(join(directory, name))).map((name) => ({
    path: "site.directory",
    message: `has "${name}", which is never served: /${name} is the server's own`,
  }));
}
