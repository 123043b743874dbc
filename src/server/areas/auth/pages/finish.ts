import { isJsonObject } from "../../../../kernel/json/json.ts";
import { asksForAccount } from "../service/invitations.ts";
import type { ApiAnswer } from "./api.ts";
import type { Answer } from "./layout.ts";
import { NO_VISIT, type Visitor } from "./visitor.ts";

/**
 * Goes on after a sign-in: to the second factor, back to the application with a code, or home with a session of the pages. Returns
 * null for an answer that is no sign-in.
 */
export async function finish(visitor: Visitor, { ok, body }: ApiAnswer): Promise<Answer | null> {
  if (!ok) return null;
  const { mfaTicket, factors, pageCode, refreshToken } = body;
  if (typeof mfaTicket === "string") {
    const types = Array.isArray(factors) ? factors.map((one) => String(isJsonObject(one) ? one["type"] : "")) : [];
    Object.assign(visitor.visit, { mfaTicket, factors: types, isTexted: false });
    // There is nothing to choose. A text that is refused is asked for on the page.
    if (types.every((type) => type === "phone")) await sendFactorCode(visitor);
    return { location: visitor.path("factor") };
  }
  if (typeof pageCode === "string") return goBack(visitor, pageCode);
  const token = typeof refreshToken === "string" ? visitor.deps.auth.tokens.readRefresh(refreshToken) : null;
  if (token === null) return null;
  await beginSession(visitor, token.sessionId);
  const { isAgain, link } = visitor.visit;
  // An invitation waits for its button.
  const invitation = link?.page === "accept-invite" && asksForAccount(visitor.deps.auth, link.token) ? link : null;
  clear(visitor);
  visitor.visit.link = invitation;
  if (invitation !== null) return { location: visitor.path("accept-invite") };
  return { location: isAgain ? visitor.path("account") : homeOf(visitor) };
}

/** Sends a code to the phone that is the second factor. */
export async function sendFactorCode(visitor: Visitor): Promise<ApiAnswer> {
  const { mfaTicket } = visitor.visit;
  const answer = await visitor.call("POST /api/auth/mfa/phone/send", { body: { mfaTicket }, accessToken: null });
  if (answer.ok) visitor.visit.isTexted = true;
  return answer;
}

/** Returns to the application with a code; the pages keep no session. */
export function goBack(visitor: Visitor, code: string): Answer {
  const { back } = visitor.visit;
  if (back === null) return { location: visitor.path("sign-in") };
  const url = new URL(back.to);
  url.searchParams.set("code", code);
  clear(visitor);
  return { location: url.href };
}

/** Begins the session of this browser. The one before ends, so that none is left behind; an application's goes on. */
async function beginSession(visitor: Visitor, sessionId: string): Promise<void> {
  if (visitor.session?.isOwn === true && visitor.session.sessionId !== sessionId) await visitor.endSession();
  visitor.keepSession({ sessionId, tokenVersion: 0, isOwn: true });
}

const homeOf = (visitor: Visitor): string => visitor.deps.config.home ?? visitor.path("account");

function clear({ visit }: Visitor): void {
  Object.assign(visit, NO_VISIT, { notice: visit.notice });
}

/** Sends a user to sign in again, and back to the account then. */
export function askAgain(visitor: Visitor): Answer {
  visitor.visit.isAgain = true;
  visitor.visit.notice = visitor.language.texts.signInAgain;
  return { location: visitor.path("sign-in") };
}
