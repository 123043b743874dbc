import { Type } from "typebox";
import { AppError, badField, badRequest } from "../../../../kernel/errors.ts";
import { optional } from "../../../../kernel/schema/types.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import { requireMetadataSize } from "../../../access/accounts.ts";
import { Identity } from "../../../config/shapes/sign-in.ts";
import { DisplayName, Metadata } from "../../../config/shapes/user-fields.ts";
import { singleFields } from "../../../http/bodies/urlencoded.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { SMALL_BODY_MAX_BYTES } from "../../../http/limits.ts";
import { beginningOf } from "../../../http/outgoing/call.ts";
import { OK } from "../../../http/reply.ts";
import { ID_TOKEN_MAX_CHARACTERS, OAUTH_STATE_TTL_MS, SMALL_FORM_FIELDS_MAX } from "../limits.ts";
import { identitiesOf, removeOwnMeans } from "../service/means.ts";
import { beginLink, beginOAuth, type Finished, finishOAuth } from "../service/oauth.ts";
import { redeemCode, redeemLink, signInByToken } from "../service/oauth-codes.ts";
import type { OAuthProviders } from "../service/oauth-providers.ts";
import { callerOf, clientOf, type EndpointDeps, Ok, ofUsers, SignedIn, Token } from "./parts.ts";

const COOKIE_HASH_CHARACTERS = 16;

const FORM_TIMEOUT_MS = 10 * SECOND_MS;

const OF_PROVIDER = { provider: "A provider declared under `auth.oauth`" };

export function oauthEndpoints(deps: EndpointDeps): readonly Endpoint[] {
  const { providers } = deps;
  return [
    begin(deps, providers),
    finish(deps, providers),
    posted(deps),
    redeem(deps),
    byToken(deps, providers),
    ...linking(deps, providers),
    ...identities(deps),
  ];
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
        code_challenge: Type.Optional(
          Type.String({
            minLength: 43,
            maxLength: 43,
            description:
              "The SHA-256 of a verifier, in base64url: `redirect_url` gets `?code=` to redeem, and no tokens",
          }),
        ),
        code_challenge_method: Type.Optional(Type.Literal("S256")),
      },
      answers: { 302: { description: "To the provider" } },
      errors: [400, 404, 502],
    },
    async ({ params, query }) => {
      const {
        redirect_url: redirectUrl = null,
        code_challenge: challenge = null,
        code_challenge_method: method,
      } = query();
      if (challenge !== null && method === undefined) {
        throw badField("code_challenge_method", "required", "code_challenge_method is required, and must be S256");
      }
      const begun = await beginOAuth(deps, providers, { provider: params.provider, redirectUrl, challenge });
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
            "To `redirect_url` with `#access_token=…&refresh_token=…`, `#mfa_required=true&mfa_ticket=…` or `#error=…`; " +
            "with `?code=…` or `?error=…` where a code was asked for",
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

/** Parameters of a posted callback that are passed on: what the provider answers, and what Apple says of the user. */
const POSTED = ["state", "code", "error", "error_description", "user", "iss"] as const;

/**
 * Redirects a callback that comes as a posted form to the one that takes a query: browsers send the cookie of a sign-in with a
 * redirect, and not with a form of another site.
 */
const posted = (deps: EndpointDeps): Endpoint =>
  endpoint(
    "POST /api/auth/oauth/:provider/callback",
    {
      ...ofUsers(deps.authLimit),
      summary: "Take the answer of an OAuth provider that posts it",
      caller: "public",
      path: OF_PROVIDER,
      rawBody: {
        contentType: "application/x-www-form-urlencoded",
        schema: Type.Object({ state: Type.String(), code: Type.Optional(Type.String()) }),
      },
      answers: { 303: { description: "To the callback with the same parameters" } },
      errors: [400, 413],
    },
    async ({ request, params, query }) => {
      query();
      const form = singleFields(await formOf(request), SMALL_FORM_FIELDS_MAX);
      if (!form.get("state")) throw badField("state", "required", "state is required");
      const passedOn = new URLSearchParams();
      for (const name of POSTED) {
        const value = form.get(name);
        if (value !== undefined) passedOn.set(name, value);
      }
      const location = `${deps.publicUrl()}/api/auth/oauth/${encodeURIComponent(params.provider)}/callback?${passedOn}`;
      const headers = { location, "cache-control": "no-store", "referrer-policy": "no-referrer" };
      return new Response(null, { status: 303, headers });
    },
  );

/** Errors: 413; 400 for one that does not arrive. */
async function formOf({ body }: Request): Promise<Uint8Array> {
  const until = AbortSignal.timeout(FORM_TIMEOUT_MS);
  const { bytes, isCut, cause } = await beginningOf(body, { maxBytes: SMALL_BODY_MAX_BYTES, until });
  if (isCut && cause === undefined && !until.aborted)
    throw new AppError(413, `The form must have at most ${SMALL_BODY_MAX_BYTES} bytes`);
  if (isCut) throw badRequest("The form did not arrive");
  return bytes;
}

const redeem = (deps: EndpointDeps): Endpoint =>
  endpoint(
    "POST /api/auth/oauth/redeem",
    {
      ...ofUsers(deps.authLimit),
      summary: "Sign in with the code of a sign-in that began with a challenge",
      caller: "public",
      body: Type.Object({
        code: Token,
        codeVerifier: Type.String({
          minLength: 43,
          maxLength: 128,
          description: "What the challenge is the hash of",
        }),
      }),
      answers: { 200: SignedIn },
      errors: [409],
    },
    async (context) => redeemCode(deps, { ...(await context.body()), client: clientOf(context) }),
  );

const byToken = (deps: EndpointDeps, providers: OAuthProviders): Endpoint =>
  endpoint(
    "POST /api/auth/oauth/:provider/token",
    {
      ...ofUsers(deps.authLimit),
      summary: "Sign in with an ID token that an app on a device has got",
      caller: "public",
      path: OF_PROVIDER,
      body: Type.Object({
        idToken: Type.String({ minLength: 1, maxLength: ID_TOKEN_MAX_CHARACTERS, description: "Valid once" }),
        nonce: optional(
          Type.String({
            minLength: 1,
            maxLength: 256,
            description: "That of the token, which may have its SHA-256 in hex",
          }),
        ),
        displayName: DisplayName,
        metadata: Metadata,
      }),
      answers: { 200: SignedIn },
      errors: [404, 409, 413],
    },
    async (context) => {
      const { idToken, nonce = null, displayName = null, metadata = {} } = await context.body();
      requireMetadataSize({ metadata });
      const { provider } = context.params;
      const given = { provider, idToken, nonce, displayName, metadata, client: clientOf(context) };
      return signInByToken(deps, providers, given);
    },
  );

function linking(deps: EndpointDeps, providers: OAuthProviders): readonly Endpoint[] {
  const begin = endpoint(
    "POST /api/auth/oauth/:provider/link",
    {
      ...ofUsers(deps.authLimit),
      summary: "Begin to link an account at a provider to yours",
      description: "Send the browser to `url`. It returns to `redirectUrl` with `?code=`, which your session redeems.",
      caller: "user",
      path: OF_PROVIDER,
      body: Type.Object({ redirectUrl: Type.String({ description: "Must match `auth.redirectUrls`" }) }),
      answers: { 200: Type.Object({ url: Type.String() }, { description: "The provider's address" }) },
      errors: [404, 502],
    },
    async ({ principal, params, body }) => {
      const { redirectUrl } = await body();
      return { url: await beginLink(deps, providers, callerOf(principal), { provider: params.provider, redirectUrl }) };
    },
  );
  const complete = endpoint(
    "POST /api/auth/oauth/:provider/link/redeem",
    {
      ...ofUsers(deps.authLimit),
      summary: "Link the account at a provider that your browser came back from",
      caller: "user",
      path: OF_PROVIDER,
      body: Type.Object({ code: Token }),
      answers: { 200: Ok },
      errors: [404, 409],
    },
    async ({ principal, params, body }) => {
      const { code } = await body();
      await redeemLink(deps, callerOf(principal), { provider: params.provider, code });
      return OK;
    },
  );
  return [begin, complete];
}

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

/** Returns the path of the callback, as browsers see it: a proxy may serve this server below a path of its own. */
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

/** Returns where the browser goes. Tokens go into the fragment, which browsers send to no server. */
function destination(finished: Finished): string {
  const url = new URL(finished.redirectUrl);
  if ("code" in finished) {
    url.searchParams.set("code", finished.code);
    return url.href;
  }
  if ("error" in finished && finished.hasCode) {
    url.searchParams.set("error", finished.error);
    url.searchParams.set("error_description", finished.description);
    return url.href;
  }
  const fragment = new URLSearchParams();
  if ("error" in finished) {
    fragment.set("error", finished.error);
    fragment.set("error_description", finished.description);
  } else if ("mfaRequired" in finished.answer) {
    fragment.set("mfa_required", "true");
    fragment.set("mfa_ticket", finished.answer.mfaTicket);
  } else if ("accessToken" in finished.answer) {
    fragment.set("access_token", finished.answer.accessToken);
    fragment.set("refresh_token", finished.answer.refreshToken);
  }
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
      errors: [400, 404, 409],
    },
    async ({ principal, params, query }) => {
      query();
      await removeOwnMeans(deps, callerOf(principal), { kind: "identity", id: params.id });
      return OK;
    },
  );
  return [list, remove];
}
