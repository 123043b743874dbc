import { SECRET_BYTES } from "../limits.ts";
import { pagesUrl } from "../sessions/page-links.ts";
import { asksForSignIn, faultOf } from "./faults.ts";
import { askAgain, finish } from "./finish.ts";
import type { Answer } from "./layout.ts";
import { failedLink } from "./link-pages.ts";
import type { Visitor } from "./visitor.ts";

// Signing in with an account at a provider, and linking one. The code of the callback is redeemed by what the browser's cookie holds.

/** Leads to a provider. Returns the cookie of the callback beside it. */
export async function leadToProvider(
  visitor: Visitor,
  provider: string,
): Promise<{ answer: Answer; cookie: string | null }> {
  const { auth } = visitor.deps;
  const verifier = auth.ids.secret(SECRET_BYTES);
  const challenge = new Bun.CryptoHasher("sha256").update(verifier).digest("base64url");
  const query = new URLSearchParams({
    redirect_url: pagesUrl(auth, "oauth"),
    code_challenge: challenge,
    code_challenge_method: "S256",
  });
  const begun = await visitor.call(`GET /api/auth/oauth/${encodeURIComponent(provider)}?${query}`, {
    accessToken: null,
  });
  const location = begun.headers.get("location");
  if (begun.status !== 302 || location === null) return { answer: failedLink(visitor, faultOf(begun)), cookie: null };
  visitor.visit.oauth = { verifier, provider: null };
  return { answer: { location }, cookie: begun.headers.get("set-cookie") };
}

/** Leads to a provider, to link an account there to the one of the session. */
export async function leadToLink(visitor: Visitor, provider: string): Promise<Answer | null> {
  const redirectUrl = pagesUrl(visitor.deps.auth, "oauth");
  const begun = await visitor.call(`POST /api/auth/oauth/${encodeURIComponent(provider)}/link`, {
    body: { redirectUrl },
  });
  if (asksForSignIn(begun)) return askAgain(visitor);
  const { url } = begun.body;
  if (typeof url !== "string") return null;
  visitor.visit.oauth = { verifier: "", provider };
  return { location: url };
}

/** Takes what a provider has sent the browser back with. */
export async function backFromProvider(visitor: Visitor, query: URLSearchParams): Promise<Answer> {
  const { visit } = visitor;
  const { oauth } = visit;
  const code = query.get("code");
  if (oauth === null) return failedLink(visitor, { status: 400, text: "signInExpired" });
  visit.oauth = null;
  if (code === null) return failedLink(visitor, { status: 400, text: "providerFailed" });
  if (oauth.provider !== null) return linked(visitor, oauth.provider, code);
  const answer = await visitor.signIn("POST /api/auth/oauth/redeem", { code, codeVerifier: oauth.verifier });
  return (await finish(visitor, answer)) ?? failedLink(visitor, faultOf(answer));
}

async function linked(visitor: Visitor, provider: string, code: string): Promise<Answer> {
  const answer = await visitor.call(`POST /api/auth/oauth/${encodeURIComponent(provider)}/link/redeem`, {
    body: { code },
  });
  if (asksForSignIn(answer)) return askAgain(visitor);
  const { texts } = visitor.language;
  visitor.visit.notice = answer.ok ? texts.saved : texts[faultOf(answer).text];
  return { location: visitor.path("account") };
}
