import { existsSync } from "node:fs";
import { join } from "node:path";
import type { ConfigProblem } from "../problems.ts";
import { PAGES_PATH } from "../sections/auth-pages.ts";
import { SERVER_PATHS } from "../server-paths.ts";
import type { PlatformConfig } from "../types.ts";

/** Warns about files at the server's own paths, and at those of its pages, which are never served. */
export function siteWarnings({ site, auth }: PlatformConfig): ConfigProblem[] {
  if (site === undefined) return [];
  const { directory } = site;
  const hidden = SERVER_PATHS.filter((name) => existsSync(join(directory, name))).map((name) => ({
    path: "site.directory",
    message: `has "${name}", which is never served: /${name} is the server's own`,
  }));
  if (auth?.pages === undefined) return hidden;
  const { path = PAGES_PATH } = auth.pages;
  const ending = ["", ".html"].find((one) => existsSync(join(directory, path + one)));
  if (ending === undefined) return hidden;
  const message = `has "${path.slice(1)}${ending}", which the pages of auth.pages hide: set auth.pages.path to another path`;
  return [...hidden, { path: "site.directory", message }];
}
