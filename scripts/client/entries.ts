import { join, resolve } from "node:path";

export const ROOT = resolve(import.meta.dir, "../..");
export const SOURCES = join(ROOT, "src");
export const CLIENT = join(SOURCES, "client");

export const MODULE = join(CLIENT, "page");
/** The module that a page loads from `/client/index.js`. */
export const MODULE_ENTRY = join(MODULE, "index.ts");

/** The entries of the npm package: `platform` itself, `platform/client` and so on. */
export const PACKAGE_ENTRIES = {
  index: join(SOURCES, "server/config/public.ts"),
  client: join(CLIENT, "index.ts"),
  admin: join(CLIENT, "admin/index.ts"),
  react: join(CLIENT, "react/index.ts"),
} as const;
