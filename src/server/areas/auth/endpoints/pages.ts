import { Type } from "typebox";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { RETURN_TO_MAX_CHARACTERS } from "../limits.ts";
import { beginAtPages, issueTicket, redeemPageCode } from "../service/page-codes.ts";
import { callerOf, clientOf, type EndpointDeps, ofUsers, requireEnabled, Token, tokensAnswer } from "./parts.ts";

/** Endpoints by which applications sign in at the pages and open the account page. */
export function pageCodeEndpoints(deps: EndpointDeps): readonly Endpoint[] {
  const requirePages = () => requireEnabled(deps.config.pages !== undefined, "Signing in at pages of this server");
  const redeem = endpoint(
    "POST /api/auth/pages/redeem",
    {
      ...ofUsers(deps.authLimit),
      summary: "Begin the session of somebody who has signed in at the pages",
      description: "A code lives 60 seconds and works once; another verifier than that of the challenge ends it.",
      caller: "public",
      body: Type.Object({
        code: Token,
        codeVerifier: Type.String({ minLength: 43, maxLength: 128, description: "What the challenge is the hash of" }),
      }),
      answers: { 200: tokensAnswer("The user and the tokens") },
      errors: [404],
    },
    async (context) => {
      const body = await context.body();
      requirePages();
      return redeemPageCode(deps, { ...body, client: clientOf(context) });
    },
  );
  const ticket = endpoint(
    "POST /api/auth/pages/ticket",
    {
      ...ofUsers(deps.authLimit),
      summary: "Get an address that opens the account page in your session",
      description: "It works once, within 30 seconds. The page says whose account it is, and asks for a press.",
      caller: "user",
      answers: { 200: Type.Object({ url: Type.String() }, { description: "Where to send the browser" }) },
      errors: [404],
    },
    async ({ principal, query }) => {
      query();
      requirePages();
      return { url: await issueTicket(deps, callerOf(principal)) };
    },
  );
  const begin = endpoint(
    "POST /api/auth/pages/begin",
    {
      ...ofUsers(deps.authLimit),
      summary: "Begin a sign-in at the pages",
      description:
        "Keep `codeVerifier`, and send the browser to `url`, within 30 seconds where an anonymous user calls: signing up keeps that account then.",
      caller: "public",
      body: Type.Object({
        returnTo: Type.String({ maxLength: RETURN_TO_MAX_CHARACTERS, description: "Where the browser comes back to" }),
      }),
      answers: {
        200: Type.Object(
          { url: Type.String(), codeVerifier: Type.String() },
          { description: "Where to send the browser, and what redeems the code" },
        ),
      },
      errors: [404],
    },
    async ({ principal, body }) => {
      const { returnTo } = await body();
      requirePages();
      return beginAtPages(deps, returnTo, principal.kind === "user" ? callerOf(principal) : null);
    },
  );
  return [begin, redeem, ticket];
}
