import { Type } from "typebox";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import { Identity } from "../../../config/shapes/sign-in.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { OK } from "../../../http/reply.ts";
import { OAUTH_STATE_TTL_MS } from "../limits.ts";
import {
  beginOAuth,
  type Finished,
  finishOAuth,
  identitiesOf,
  OAuthProviders,
  removeIdentity,
} from "../service/oauth.ts";
import { callerOf, clientOf, type EndpointDeps, Ok, ofUsers } from "./parts.ts";

const COOKIE_HASH_CHARACTERS = 16;

const OF_PROVIDER = { provider: "A provider declared under `auth.oauth`" };

export function oauthEndpoints(deps: EndpointDeps): readonly Endpoint[] {
  const providers = new OAuthProviders(deps.config.oauth ?? {}, deps.clock.now);
  return [begin(deps, providers), finish(deps, providers), ...identities(deps)];
}

const begin = (deps: EndpointDeps, providers: OAuthProviders): Endpoint =>
  endpoint(
    "GET /api/auth/oauth/:provider",
    {
      ...ofUsers(deps.authLimit),
      summary: "Start a sign-in with an OAuth provider",
      caller: "public",
      path: OF_PROVIDER,
      query: {
        redirect_url: Type.Optional(
          Type.String({ description: "Must match `auth.redirectUrls`; the server's root by default" }),
        ),
      },
      answers: { 302: { description: "To the provider" } },
      errors: [400, 404, 502],
    },
    async ({ params, query }) => {
      const { redirect_url: redirectUrl = null } = query();
      const begun = await beginOAuth(deps, providers, { provider: params.provider, redirectUrl });
      const { location, state, browserSecret } = begun;
      const publicUrl = deps.publicUrl();
      const secure = publicUrl.startsWith("https:") ? "; Secure" : "";
      const maxAgeSeconds = OAUTH_STATE_TTL_MS / SECOND_MS;
      const attributes = `Path=${cookiePath(publicUrl)}; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax`;
      return redirect(location, `${cookieName(state)}=${browserSecret}; ${attributes}${secure}`);
    },
  );

const finish = (deps: EndpointDeps, providers: OAuthProviders): Endpoint =>
  endpoint(
    "GET /api/auth/oauth/:provider/callback",
    {
      ...ofUsers(deps.authLimit),
      summary: "Complete a sign-in with an OAuth provider, which redirects the browser here",
      caller: "public",
      path: OF_PROVIDER,
      query: { state: Type.String(), code: Type.Optional(Type.String()), error: Type.Optional(Type.String()) },
      otherQuery: "What a provider adds: `iss`, `scope`, `session_state`, `error_description` …",
      answers: {
        302: {
          description:
            "To `redirect_url` with `#access_token=…&refresh_token=…`, `#mfa_required=true&mfa_ticket=…` or `#error=…`",
        },
      },
      errors: [400, 404, 409],
    },
    async (context) => {
      context.query();
      const query = new URLSearchParams(context.queryText());
      const name = cookieName(query.get("state") ?? "");
      const finished = await finishOAuth(deps, providers, {
        provider: context.params.provider,
        query,
        browserSecret: browserSecretOf(context.request, name),
        client: clientOf(context),
      });
      const path = cookiePath(deps.publicUrl());
      return redirect(destination(finished), `${name}=; Path=${path}; Max-Age=0; HttpOnly; SameSite=Lax`);
    },
  );

/** Redirects. Neither the tokens in the fragment nor the state are for caches and other sites. */
function redirect(location: string, cookie: string): Response {
  const headers = {
    location,
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "set-cookie": cookie,
  };
  return new Response(null, { status: 302, headers });
}

/** Where browsers call the callback: a proxy may serve this server below a path of its own. */
const cookiePath = (publicUrl: string): string =>
  `${URL.parse(publicUrl)?.pathname.replace(/\/$/, "") ?? ""}/api/auth/oauth`;

/** One cookie for each sign-in, so that sign-ins in two tabs can both be completed. */
const cookieName = (state: string): string =>
  `platform_oauth_${Bun.SHA256.hash(state, "hex").slice(0, COOKIE_HASH_CHARACTERS)}`;

/**
 * Returns the cookie that `begin` set; null where a browser has none. Only browsers send `Sec-Fetch-Site`: another client cannot be
 * lured into somebody else's sign-in, and needs no cookie.
 */
function browserSecretOf(request: Request, name: string): string | null | undefined {
  const cookies = request.headers.get("cookie") ?? "";
  const found = cookies.split(/;\s*/).find((cookie) => cookie.startsWith(`${name}=`));
  if (found !== undefined) return found.slice(name.length + 1);
  return request.headers.has("sec-fetch-site") ? null : undefined;
}

/** Tokens go into the fragment, which browsers send to no server. */
function destination(finished: Finished): string {
  const fragment = new URLSearchParams();
  if ("error" in finished) {
    fragment.set("error", finished.error);
    fragment.set("error_description", finished.description);
  } else if ("mfaRequired" in finished.answer) {
    fragment.set("mfa_required", "true");
    fragment.set("mfa_ticket", finished.answer.mfaTicket);
  } else {
    fragment.set("access_token", finished.answer.accessToken);
    fragment.set("refresh_token", finished.answer.refreshToken);
  }
  const url = new URL(finished.redirectUrl);
  url.hash = fragment.toString();
  return url.href;
}

function identities(deps: EndpointDeps): readonly Endpoint[] {
  const list = endpoint(
    "GET /api/auth/identities",
    {
      ...ofUsers(deps.authLimit),
      summary: "List the OAuth identities that you sign in with",
      caller: "user",
      answers: { 200: Type.Object({ identities: Type.Array(Identity) }, { description: "The identities" }) },
    },
    ({ principal, query }) => {
      query();
      return { identities: identitiesOf(deps, callerOf(principal)) };
    },
  );
  const remove = endpoint(
    "DELETE /api/auth/identities/:id",
    {
      ...ofUsers(deps.authLimit),
      summary: "Remove one of your OAuth identities",
      caller: "user",
      path: { id: "The identity's id" },
      answers: { 200: Ok },
      errors: [400, 404],
    },
    async ({ principal, params, query }) => {
      query();
      await removeIdentity(deps, callerOf(principal), params.id);
      return OK;
    },
  );
  return [list, remove];
}
