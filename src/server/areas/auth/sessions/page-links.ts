import { PAGES_PATH } from "../../../config/sections/auth-pages.ts";
import type { AuthDeps } from "./deps.ts";

/** The path below which the pages are; null: there are none. */
export const pagesPathOf = ({ config }: Pick<AuthDeps, "config">): string | null =>
  config.pages === undefined ? null : (config.pages.path ?? PAGES_PATH);

/** Returns the address of a page; without pages, one of the application's below `/auth`, to which mails have always led. */
export const pagesUrl = (deps: Pick<AuthDeps, "config" | "publicUrl">, page: string): string =>
  `${deps.publicUrl()}${pagesPathOf(deps) ?? PAGES_PATH}/${page}`;
