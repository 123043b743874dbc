import { PAGES_PATH } from "../../../config/sections/auth-pages.ts";
import type { AuthDeps } from "../sessions/deps.ts";
import type { OwnServer } from "./api.ts";
import { Assets } from "./assets.ts";
import { PageCookies } from "./cookies.ts";
import * as routes from "./routes.ts";
import { languageChooser } from "./texts/languages.ts";
import type { PagesDeps } from "./visitor.ts";

/** Makes everything that the pages need. `name`: what mails call the product. */
export async function createPages(
  auth: AuthDeps,
  server: OwnServer,
  name: () => string,
): Promise<{ routes: typeof routes; deps: PagesDeps; assets: Assets }> {
  const config = auth.config.pages ?? {};
  const base = () => `${new URL(auth.publicUrl()).pathname.replace(/\/$/, "")}${config.path ?? PAGES_PATH}`;
  const assets = await Assets.of(config, () => config.name ?? name());
  const { sealing } = auth;
  const cookies = new PageCookies({ sealing, path: base });
  const deps = {
    auth,
    config,
    server,
    cookies,
    language: languageChooser(config.languages),
    style: assets.style,
    base,
  };
  return { routes, deps, assets };
}
