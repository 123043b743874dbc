import { Type } from "typebox";
import { notFound } from "../../../../kernel/errors.ts";
import { PAGES_PATH } from "../../../config/sections/auth-pages.ts";
import { type Endpoint, endpoint, HIDDEN } from "../../../http/endpoint.ts";
import type { AuthDeps } from "../sessions/deps.ts";
import type { OwnServer } from "./api.ts";

// What a start loads of the pages: their paths. Everything else is loaded by the first request. [AU331]

const hidden = { ...HIDDEN, summary: "Pages for signing in", place: "core" } as const;

const text = Type.Optional(Type.String());
const SHOWN = { token: text, ticket: text, return_to: text, code_challenge: text, with: text };

/** The pages to which links in mails led before the config had pages. */
const MAILED = ["verify-email", "reset-password", "magic-link", "verify-email-change", "accept-invite"] as const;

export type { OwnServer } from "./api.ts";

/** Returns the endpoints of the pages; none without `auth.pages`. `server`: the one in which they are. */
export function pagesEndpoints(auth: AuthDeps, server: OwnServer, name: () => string): readonly Endpoint[] {
  const { pages } = auth.config;
  if (pages === undefined) return [];
  const path = (pages.path ?? PAGES_PATH) as `/${string}`; // As the config's schema says.
  let opening: ReturnType<typeof open> | null = null;
  const opened = (): ReturnType<typeof open> => {
    opening ??= open(auth, server, name).catch((cause) => {
      opening = null;
      throw cause;
    });
    return opening;
  };
  const page = async (request: Request, name: string): Promise<Response> => {
    const { routes, deps } = await opened();
    return routes.answerPage(deps, request, name);
  };
  return [
    endpoint(`GET ${path}`, hidden, ({ request }) => page(request, "")),
    endpoint(
      `GET ${path}/:page`,
      { ...hidden, path: { page: "A page" }, query: SHOWN },
      ({ request, params, query }) => {
        query();
        return page(request, params.page);
      },
    ),
    endpoint(`POST ${path}/:page`, { ...hidden, path: { page: "A page" } }, ({ request, params }) =>
      page(request, params.page),
    ),
    endpoint(`GET ${path}/assets/:file`, { ...hidden, path: { file: "A file" } }, async ({ params }) => {
      const answer = (await opened()).assets.answer(params.file);
      if (answer === null) throw notFound(`The pages have no file "${params.file}"`);
      return answer;
    }),
    endpoint(
      `GET ${path}/oauth/:provider`,
      { ...hidden, path: { provider: "A provider" } },
      async ({ request, params }) => {
        const { routes, deps } = await opened();
        return routes.answerProvider(deps, request, params.provider);
      },
    ),
    endpoint(
      `POST ${path}/passkeys/:step`,
      { ...hidden, path: { step: "sign-in or add" } },
      async ({ request, params }) => {
        const { routes, deps } = await opened();
        return routes.answerPasskey(deps, request, params.step);
      },
    ),
    endpoint(`POST ${path}/export`, hidden, async ({ request }) => {
      const { routes, deps } = await opened();
      return routes.answerExport(deps, request);
    }),
    ...(pages.pictures === undefined ? [] : [picture(path, opened)]),
    ...(path === PAGES_PATH ? [] : MAILED.map((name) => moved(auth, path, name))),
  ];
}

const picture = (path: `/${string}`, opened: () => ReturnType<typeof open>): Endpoint =>
  endpoint(`GET ${path}/picture`, hidden, async ({ request }) => {
    const { routes, deps } = await opened();
    return routes.answerPicture(deps, request);
  });

/** Leads from a link that was mailed before the pages had another path. */
const moved = ({ publicUrl }: AuthDeps, path: string, name: (typeof MAILED)[number]): Endpoint =>
  endpoint(`GET ${PAGES_PATH}/${name}`, hidden, ({ queryText }) => {
    const base = new URL(publicUrl()).pathname.replace(/\/$/, "");
    const query = queryText();
    const location = `${base}${path}/${name}${query === "" ? "" : `?${query}`}`;
    return new Response(null, { status: 302, headers: { location, "cache-control": "no-store" } });
  });

async function open(auth: AuthDeps, server: OwnServer, name: () => string) {
  const [{ createPages }] = [await import("./pages.ts")];
  return createPages(auth, server, name);
}
