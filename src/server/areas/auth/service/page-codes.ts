import { AppError, badField } from "../../../../kernel/errors.ts";
import { isJsonObject, type JsonObject } from "../../../../kernel/json/json.ts";
import type { Tokens } from "../../../config/shapes/sign-in.ts";
import { PAGE_TICKET_TTL_MS, SECRET_BYTES } from "../limits.ts";
import type { AuthDeps, Client } from "../sessions/deps.ts";
import { pagesUrl } from "../sessions/page-links.ts";
import { emailTaken, invalidToken, type OpenSession, openSession, tokensOf } from "../sessions/sign-in.ts";
import { deleteSecret, findSecret, putSecret } from "../statements/secrets.ts";
import { deleteSession, sessionById } from "../statements/sessions.ts";
import { type SecretAccount, userByEmail, userById } from "../statements/users.ts";
import { type AccountWrite, type Caller, currentAccount } from "../store/account-file.ts";
import { equalsConstantTime } from "../store/sealing.ts";

// What an application and the pages hand each other: codes that begin a session, and tickets to the account page.

const wrongCode = () => badField("code", "invalid_value", "code is wrong, used or expired");

/**
 * Begins the session of whoever has signed in at the pages. Errors: 400 for a wrong, used or expired code, or another verifier, which
 * ends it; 403 if the account has been disabled since, or its address has to be proved.
 */
export async function redeemPageCode(
  deps: AuthDeps,
  { code, codeVerifier, client }: { code: string; codeVerifier: string; client: Client },
): Promise<Tokens> {
  const challenge = new Bun.CryptoHasher("sha256").update(codeVerifier).digest("base64url");
  // A refusal uses the code up, so it is a result and not a throw.
  const result = await deps.file.write<OpenSession | AppError>((write) => {
    const hash = deps.sealing.digest("page-code", code);
    const found = findSecret.get(write.tx, { hash, purpose: "page-code", now: write.now });
    if (found === null) return wrongCode();
    deleteSecret.run(write.tx, { hash });
    const { challenge: wanted, replaces, provedAt, invitation } = found.payload;
    if (typeof wanted !== "string" || !equalsConstantTime(Buffer.from(challenge), Buffer.from(wanted))) {
      return badField("codeVerifier", "invalid_value", "codeVerifier is not that of the sign-in");
    }
    const known = found.userId === null ? null : userById.get(write.tx, { id: found.userId });
    const account = known === null ? null : linked(write, known, found.payload);
    if (account === null) return wrongCode();
    if (account instanceof AppError) return account;
    const session = openSession(deps, write, account, client, {
      provedAt: typeof provedAt === "number" ? provedAt : write.now,
      invitation: isJsonObject(invitation) ? invitation : null,
    });
    if (typeof replaces === "string") endReplaced(write, account.id, replaces);
    return session;
  });
  if (result instanceof AppError) throw result;
  return tokensOf(deps, result);
}

/**
 * Sets the address and the password of an anonymous user to those with which the visitor has signed up. Only the application that began has the
 * verifier, so nobody is made to sign up as somebody else's guest. null: the guest has ended, or signed up, since. [AU345]
 */
function linked(write: AccountWrite, account: SecretAccount, payload: JsonObject): SecretAccount | AppError | null {
  const { link, replaces, displayName } = payload;
  if (!isJsonObject(link)) return account;
  const { email, passwordHash } = link;
  const isLive = typeof replaces === "string" && sessionById.get(write.tx, { id: replaces })?.userId === account.id;
  if (!isLive || !account.isAnonymous || typeof email !== "string" || typeof passwordHash !== "string") return null;
  if (userByEmail.get(write.tx, { email }) !== null) return emailTaken();
  const name = typeof displayName === "string" ? displayName : undefined;
  return write.update(account.id, { email, passwordHash, isAnonymous: false, displayName: name });
}

/** Ends the session of the anonymous user who has become this one. */
function endReplaced(write: AccountWrite, userId: string, sessionId: string): void {
  if (sessionById.get(write.tx, { id: sessionId })?.userId !== userId) return;
  deleteSession.run(write.tx, { id: sessionId });
  write.signOut(userId, [sessionId], "asked");
}

/** Makes a ticket with which a browser opens the account page in the caller's session. Returns the address. Errors: 401. */
export async function issueTicket(deps: AuthDeps, caller: Caller): Promise<string> {
  const ticket = deps.ids.secret(SECRET_BYTES);
  const { userId, sessionId, tokenVersion } = caller;
  await deps.file.write((write) => {
    if (currentAccount(write, caller) === null) throw invalidToken();
    putSecret.run(write.tx, {
      hash: deps.sealing.digest("page-ticket", ticket),
      purpose: "page-ticket",
      userId,
      payload: { sessionId, tokenVersion },
      expiresAt: write.now + PAGE_TICKET_TTL_MS,
    });
  });
  return `${pagesUrl(deps, "account")}?ticket=${ticket}`;
}

/**
 * Begins a sign-in at the pages for an application. The verifier is made here, since browsers hash on https and localhost alone. An
 * anonymous caller's account goes on when it signs up there. Errors: 401.
 */
export async function beginAtPages(
  deps: AuthDeps,
  returnTo: string,
  caller: Caller | null,
): Promise<{ url: string; codeVerifier: string }> {
  const codeVerifier = deps.ids.secret(SECRET_BYTES);
  const challenge = new Bun.CryptoHasher("sha256").update(codeVerifier).digest("base64url");
  const query = new URLSearchParams({ return_to: returnTo, code_challenge: challenge });
  const account = caller === null ? null : userById.get(deps.file.sql, { id: caller.userId });
  if (caller !== null && account?.isAnonymous === true) {
    query.set("ticket", new URL(await issueTicket(deps, caller)).searchParams.get("ticket") ?? "");
  }
  return { url: `${pagesUrl(deps, "sign-in")}?${query}`, codeVerifier };
}
