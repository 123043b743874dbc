import { badField } from "../../../../kernel/errors.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import {
  EMAIL_CODE_TTL_MS,
  INVITATION_TTL_MS,
  MAGIC_LINK_TTL_MS,
  RESET_TTL_MS,
  SECRET_BYTES,
  VERIFICATION_TTL_MS,
} from "../limits.ts";
import type { MailKind } from "../mail/built-in.ts";
import type { Posted } from "../mail/mailer.ts";
import type { MailValues } from "../mail/templates.ts";
import { deleteSecret, findSecret, type OneTimeSecret, putSecret, type SecretPurpose } from "../statements/secrets.ts";
import { type SecretAccount, userById } from "../statements/users.ts";
import { type AccountWrite, accountDisabled } from "../store/account-file.ts";
import { codeHash } from "./codes.ts";
import type { AuthDeps } from "./deps.ts";
import { pagesUrl } from "./page-links.ts";

// Tokens that are mailed as links. Each is valid once, also when two requests race.

/** The links that are mailed, by their purpose: the kind of the mail, and the page under `publicUrl` without a redirect. */
const LINKS = {
  "verify-email": { kind: "verification", page: "verify-email", ttlMs: VERIFICATION_TTL_MS },
  "reset-password": { kind: "passwordReset", page: "reset-password", ttlMs: RESET_TTL_MS },
  "magic-link": { kind: "magicLink", page: "magic-link", ttlMs: MAGIC_LINK_TTL_MS },
  "email-change": { kind: "emailChange", page: "verify-email-change", ttlMs: VERIFICATION_TTL_MS },
  invite: { kind: "invite", page: "accept-invite", ttlMs: INVITATION_TTL_MS },
} as const satisfies { readonly [Purpose in SecretPurpose]?: { kind: MailKind; page: string; ttlMs: number } };

type LinkPurpose = keyof typeof LINKS;

export const mailKindOf = (purpose: LinkPurpose): MailKind => LINKS[purpose].kind;

/** A token to be mailed as part of a link. */
interface MailedToken {
  purpose: LinkPurpose;
  userId: string | null;
  email: string;
  redirect: URL | null;
  /** The language of the request, for an address without an account. */
  language?: string | null;
  /** Values that fill the mail, beside the link. */
  values?: Pick<MailValues, "inviter" | "data">;
  /** Facts that the use of the token needs beside the address. */
  payload?: JsonObject;
  /** false: no mail is sent, after the same work. true by default. */
  isMailed?: boolean;
}

/** Stores a new token, and writes the mail with its link down. */
export function mailToken(deps: AuthDeps, write: AccountWrite, token: MailedToken): Posted {
  return mailLink(deps, write, token).posted;
}

/** Does what `mailToken` does, and returns the link too. */
export function mailLink(deps: AuthDeps, write: AccountWrite, token: MailedToken): { posted: Posted; link: string } {
  const { purpose, userId, email, redirect, payload, isMailed = true } = token;
  const { kind, page, ttlMs } = LINKS[purpose];
  const text = deps.ids.secret(SECRET_BYTES);
  const hash = deps.sealing.digest(purpose, text);
  putSecret.run(write.tx, { hash, purpose, userId, payload: { ...payload, email }, expiresAt: write.now + ttlMs });
  // Never from the Host header: the sender of a request must not choose where the links of its mails lead.
  const link = new URL(redirect ?? pagesUrl(deps, page));
  link.searchParams.set("token", text);
  const { name, language } = readerOf(write, userId, token.language ?? null);
  const values = { ...token.values, email, name, link: link.href };
  const posted = deps.mailer.post(write.tx, { kind, values, language, ttlMs, delivery: isMailed ? "mail" : "none" });
  return { posted, link: link.href };
}

/** Returns whom a mail is for. `language`: of the request, where there is no account. */
function readerOf(write: AccountWrite, userId: string | null, language: string | null) {
  // Looked up where there is no account too, so that the work is the same.
  const account = userById.get(write.tx, { id: userId ?? "" });
  return account === null ? { name: null, language } : { name: account.displayName, language: account.language };
}

/** Mails a token in a write of its own. `check` is called in the write. Errors: its own; 429 for too many mails to the address. */
export async function issueToken(
  deps: AuthDeps,
  token: MailedToken,
  check: (write: AccountWrite) => void = () => {},
): Promise<void> {
  deps.mailLimit.hit(token.email);
  const posted = await deps.file.write((write) => {
    check(write);
    return mailToken(deps, write, token);
  });
  await posted();
}

/** Stores a code that replaces an earlier one of the address, and writes the mail with it down. */
export function mailCode(
  deps: AuthDeps,
  write: AccountWrite,
  mailed: { email: string; userId: string | null; code: string; isMailed: boolean; language: string | null },
): Posted {
  const { email, userId, code, isMailed } = mailed;
  putSecret.run(write.tx, {
    hash: deps.sealing.digest("email-otp", email),
    purpose: "email-otp",
    userId,
    payload: { code: codeHash(deps, "email-otp", email, code).toString("base64") },
    expiresAt: write.now + EMAIL_CODE_TTL_MS,
  });
  const { name, language } = readerOf(write, userId, mailed.language);
  const mail = { kind: "emailOtp", values: { email, name, code }, language, ttlMs: EMAIL_CODE_TTL_MS } as const;
  return deps.mailer.post(write.tx, { ...mail, delivery: isMailed ? "mail" : "none" });
}

export const invalidMailToken = () => badField("token", "invalid_value", "token is wrong, used or expired");

/** Deletes the secret of a token, and returns it. Errors: 400. */
export function useToken(
  { sealing, addressOf }: AuthDeps,
  write: AccountWrite,
  purpose: LinkPurpose,
  token: string,
): OneTimeSecret & { email: string } {
  const hash = sealing.digest(purpose, token);
  const secret = findSecret.get(write.tx, { hash, purpose, now: write.now });
  const email = secret?.payload["email"];
  if (secret === null || typeof email !== "string") throw invalidMailToken();
  deleteSecret.run(write.tx, { hash });
  // It may have been mailed before the address was given its one form.
  return { ...secret, email: addressOf(email) };
}

/** Returns the secret of a token, which stays. Errors: 400 where `useToken` would not find the token. */
export function checkToken({ sealing, file, clock }: AuthDeps, purpose: LinkPurpose, token: string): OneTimeSecret {
  const hash = sealing.digest(purpose, token);
  const secret = findSecret.get(file.sql, { hash, purpose, now: clock.now() });
  if (secret === null) throw invalidMailToken();
  return secret;
}

/** Returns the user of a token. Errors: 400 if there is none any more; 403 if disabled, which only the right token reveals. */
export function userOfToken(write: AccountWrite, secret: OneTimeSecret): SecretAccount {
  const account = secret.userId === null ? null : userById.get(write.tx, { id: secret.userId });
  if (account === null) throw invalidMailToken();
  if (account.disabled) throw accountDisabled();
  return account;
}
