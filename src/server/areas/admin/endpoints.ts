import { Type } from "typebox";
import { forbidden } from "../../../kernel/errors.ts";
import { optional } from "../../../kernel/schema/types.ts";
import type { ServiceKeyPrincipal } from "../../access/keys/service-keys.ts";
import { ADMIN_HEADER } from "../../access/principals.ts";
import { type Endpoint, endpoint } from "../../http/endpoint.ts";
import { SMALL_BODY_MAX_BYTES } from "../../http/limits.ts";
import type { RateLimiter } from "../../http/rate-limit.ts";
import type { Sessions } from "./sessions.ts";
import type { SessionCookie, SignIn } from "./sign-in.ts";

const TAG = "Administration";
const DONE = { description: "Done" };
const ADMIN = { name: "X-Platform-Admin", description: "1: required, as no page of another site can send it" };

const Credentials = Type.Object({
  key: optional(Type.String({ description: "A service key" })),
  code: optional(Type.String({ description: "Of a link, instead of a key" })),
});

const Administrator = Type.Object({
  name: Type.String({ description: "The name of the service key" }),
  scopes: Type.Array(Type.String()),
});

/** Endpoints to sign in with a service key, for pages in a browser. */
export function sessionEndpoints(deps: {
  signIn: SignIn;
  sessions: Sessions;
  cookie: SessionCookie;
  /** Rate limiter of wrong keys and codes, by client network. */
  failures: RateLimiter;
  /** Whether browsers reach the server by https, as far as the server knows. */
  isSecure: (request: Request) => boolean;
}): readonly Endpoint[] {
  const { signIn, sessions, cookie, failures, isSecure } = deps;
  const answer = (...setCookies: readonly string[]): Response =>
    new Response(null, { status: 204, headers: setCookies.map((value): [string, string] => ["set-cookie", value]) });

  const open = endpoint(
    "POST /api/admin/session",
    {
      tag: TAG,
      summary: "Sign in as an administrator, with a service key or the code of a link",
      description:
        "Sets a cookie that stands for the key for 12 hours, or until it has not been used for one hour. It counts only in requests with `X-Platform-Admin: 1`. Five wrong keys or codes of one address within a minute, and the next ones are 429.",
      caller: "open",
      place: "core",
      bodyMaxBytes: SMALL_BODY_MAX_BYTES,
      body: Credentials,
      answers: { 204: DONE },
      errors: [401, 403],
    },
    async ({ request, body, address }) => {
      const key = await signIn(await body(), address);
      return answer(cookie.set(await sessions.open(key), { isSecure: isSecure(request) }));
    },
  );

  const read = endpoint(
    "GET /api/admin/session",
    {
      tag: TAG,
      summary: "Get the name and the scopes of the service key that this request is made with",
      description: "Wrong keys count as those of a sign-in do.",
      caller: "serviceKey",
      place: "core",
      wrongKeys: failures,
      headers: [ADMIN],
      answers: { 200: Administrator },
    },
    ({ principal, query }) => {
      query();
      // The server itself makes no requests.
      const { name, scopes } = principal as ServiceKeyPrincipal;
      return { name, scopes: scopes.texts };
    },
  );

  const end = endpoint(
    "DELETE /api/admin/session",
    {
      tag: TAG,
      summary: "End the administrator's session",
      caller: "open",
      place: "core",
      headers: [ADMIN],
      answers: { 204: DONE },
      errors: [403],
    },
    async ({ request, query }) => {
      query();
      if (request.headers.get(ADMIN_HEADER) !== "1") throw forbidden("X-Platform-Admin: 1 is required");
      await Promise.all(cookie.read(request.headers).map((token) => sessions.end(token)));
      return answer(...cookie.remove());
    },
  );

  return [open, read, end];
}
