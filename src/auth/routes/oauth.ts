import { type AnyElysia, Elysia } from "elysia";
import { Type } from "typebox";
import type { Http, RequestContext } from "../../http/http.ts";
import { operation } from "../../http/operation.ts";
import { OK } from "../../http/reply.ts";
import { SECOND_MS } from "../../kernel/duration.ts";
import { OAUTH_STATE_TTL_MS } from "../limits.ts";
import type { Finished, OAuthService } from "../oauth/service.ts";
import type { RouteDeps } from "./account.ts";
import { callerOf, clientOf } from "./context.ts";
import { nullable, OkSchema } from "./schemas.ts";

const COOKIE_PATH = "/api/auth/oauth";
const COOKIE_HASH_CHARACTERS = 16;
const tag = "Auth";

interface OAuthRouteDeps extends RouteDeps {
  publicUrl: () => string;
}

/** Signing in elsewhere. Decisions 6. */
export function oauthRoutes({ http, authLimit, publicUrl }: OAuthRouteDeps, oauth: OAuthService): AnyElysia {
  const limited = { limit: authLimit };
  const begin = http.route(async ({ params, query }) => {
    const { location, state, browserSecret } = await oauth.begin(params["provider"] ?? "", query().get("redirect_url"));
    const secure = publicUrl().startsWith("https:") ? "; Secure" : "";
    const maxAgeSeconds = OAUTH_STATE_TTL_MS / SECOND_MS;
    const rest = `Path=${COOKIE_PATH}; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax`;
    const cookie = `${cookieName(state)}=${browserSecret}; ${rest}`;
    return redirect(location, { "set-cookie": cookie + secure });
  }, limited);
  const finish = http.route(async (context) => {
    const provider = context.params["provider"] ?? "";
    const query = new URLSearchParams(context.query().text);
    const name = cookieName(query.get("state") ?? "");
    const finished = await oauth.finish(provider, query, browserSecretOf(context, name), clientOf(context));
    const cookie = `${name}=; Path=${COOKIE_PATH}; Max-Age=0; HttpOnly; SameSite=Lax`;
    return redirect(destination(finished), { "set-cookie": cookie });
  }, limited);
  const list = http.route((context) => ({ identities: oauth.identities(callerOf(context)) }), limited);
  const remove = http.route(async (context) => {
    await oauth.removeIdentity(callerOf(context), context.params["id"] ?? "");
    return OK;
  }, limited);
  return describeOAuthRoutes({ begin, finish, list, remove });
}

const redirect = (location: string, headers: Record<string, string>): Response =>
  // Neither the tokens in the fragment nor the state are for caches and other sites.
  new Response(null, {
    status: 302,
    headers: { location, "cache-control": "no-store", "referrer-policy": "no-referrer", ...headers },
  });

/** One for each sign-in, so that those begun in two tabs can both be finished. */
const cookieName = (state: string): string =>
  `platform_oauth_${Bun.SHA256.hash(state, "hex").slice(0, COOKIE_HASH_CHARACTERS)}`;

/**
 * The cookie that `begin` set; null where a browser has none. Browsers, and only they, send `Sec-Fetch-Site`: what is no
 * browser cannot be lured into somebody else's sign-in, and needs no cookie.
 */
function browserSecretOf({ request }: RequestContext, name: string): string | null | undefined {
  const cookies = request.headers.get("cookie") ?? "";
  const found = cookies.split(/;\s*/).find((cookie) => cookie.startsWith(`${name}=`));
  if (found !== undefined) return found.slice(name.length + 1);
  return request.headers.has("sec-fetch-site") ? null : undefined;
}

/** Tokens go into the fragment, which browsers send to nobody. */
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

function describeOAuthRoutes(
  routes: Record<"begin" | "finish" | "list" | "remove", ReturnType<Http["route"]>>,
): AnyElysia {
  const path = { provider: "A provider of `auth.oauth`" };
  const redirected = (description: string) => ({ 302: { description } });
  const Identity = Type.Object({
    id: Type.String(),
    provider: Type.String(),
    email: nullable(Type.String()),
    createdAt: Type.String({ format: "date-time" }),
    lastSignInAt: Type.String({ format: "date-time" }),
  });
  return new Elysia()
    .get(
      "/api/auth/oauth/:provider",
      routes.begin,
      operation({
        ...{ tag, summary: "Sign in elsewhere", security: "public", path, errors: [400, 404, 502] },
        query: [{ name: "redirect_url", description: "Must match `auth.redirectUrls`; the server's root by default" }],
        answers: redirected("To the provider"),
      }),
    )
    .get(
      "/api/auth/oauth/:provider/callback",
      routes.finish,
      operation({
        ...{ tag, summary: "Where the provider sends the browser back", security: "public", path },
        errors: [400, 403, 404, 409],
        query: [{ name: "state", required: true }, { name: "code" }, { name: "error" }],
        otherQuery: "What a provider adds: `iss`, `scope`, `session_state`, `error_description` …",
        answers: redirected(
          "To `redirect_url` with `#access_token=…&refresh_token=…`, `#mfa_required=true&mfa_ticket=…` or `#error=…`",
        ),
      }),
    )
    .get(
      "/api/auth/identities",
      routes.list,
      operation({
        ...{ tag, summary: "Where else the user signs in", security: "user", errors: [401] },
        answers: { 200: { description: "Identities", schema: Type.Object({ identities: Type.Array(Identity) }) } },
      }),
    )
    .delete(
      "/api/auth/identities/:id",
      routes.remove,
      operation({
        ...{ tag, summary: "Forget an identity", security: "user", path: { id: "The identity's id" } },
        errors: [400, 401, 404],
        answers: { 200: { description: "Forgotten", schema: OkSchema } },
      }),
    );
}
