import { badField } from "../../../../kernel/errors.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import type { RateLimiter } from "../../../http/rate-limit.ts";
import { type AccountWrite, accountDisabled } from "../store/account-file.ts";
import type { AddressOf } from "../store/address-forms.ts";
import { SECRET_BYTES } from "../limits.ts";
import { deleteSecret, findSecret, type OneTimeSecret, putSecret, type SecretPurpose } from "../statements/secrets.ts";
import { type SecretAccount, userById } from "../statements/users.ts";
import type { AuthDeps } from "./deps.ts";
import type { Mailer, Posted } from "../mail/mailer.ts";
import type { MailKind } from "../mail/templates.ts";

export interface MailDeps extends AuthDeps {
  mailer: Mailer;
  /** Counts a mail to an address. */
  mailLimit: RateLimiter;
  publicUrl: () => string;
  addressOf: AddressOf;
}

/** A token to be mailed as part of a link. */
interface LinkToken {
  purpose: SecretPurpose;
  /** The page under `publicUrl` that the link leads to without a redirect. */
  page: string;
  ttlMs: number;
  userId: string | null;
  email: string;
  redirect: URL | null;
  /** What the use of the token needs beside the address. */
  payload?: JsonObject;
}

interface MailedToken extends LinkToken {
  kind: MailKind;
  /** false: no mail is sent, after the same work. */
  isMailed: boolean;
}

/** Tokens that are mailed as links. Each is valid once, also when two requests race. */
export interface MailTokens {
  /** Stores a new token, and writes the mail with its link down. */
  mail(write: AccountWrite, token: MailedToken): Posted;
  /** `check` is called in the write. Errors: its own; 429 for too many mails to the address. */
  issue(token: MailedToken, check?: (write: AccountWrite) => void): Promise<void>;
  /** Deletes the secret, and gives it. Errors: 400. */
  use(write: AccountWrite, purpose: SecretPurpose, token: string): OneTimeSecret & { email: string };
  /** Whether `use` would find it. Errors: 400. */
  check(purpose: SecretPurpose, token: string): void;
}

export const invalidMailToken = () => badField("token", "invalid_value", "token is wrong, used or expired");

export function createMailTokens(deps: MailDeps): MailTokens {
  const { file, sealing } = deps;
  const linkOf = (
    write: AccountWrite,
    { purpose, page, ttlMs, userId, email, redirect, payload }: LinkToken,
  ): string => {
    const token = deps.ids.secret(SECRET_BYTES);
    const hash = sealing.digest(purpose, token);
    putSecret.run(write.tx, { hash, purpose, userId, payload: { ...payload, email }, expiresAt: write.now + ttlMs });
    // Never from the Host header: the sender of a request must not choose where the links of its mails lead.
    const link = new URL(redirect ?? `${deps.publicUrl()}/auth/${page}`);
    link.searchParams.set("token", token);
    return link.href;
  };
  const mail: MailTokens["mail"] = (write, token) => {
    const { kind, email, ttlMs, isMailed } = token;
    const values = { email, link: linkOf(write, token) };
    return deps.mailer.post(write.tx, { kind, values, ttlMs, delivery: isMailed ? "mail" : "none" });
  };
  return {
    mail,
    async issue(token, check = () => {}) {
      deps.mailLimit.hit(token.email);
      const posted = await file.write((write) => {
        check(write);
        return mail(write, token);
      });
      await posted();
    },
    use(write, purpose, token) {
      const hash = sealing.digest(purpose, token);
      const secret = findSecret.get(write.tx, { hash, purpose, now: write.now });
      const email = secret?.payload["email"];
      if (secret === null || typeof email !== "string") throw invalidMailToken();
      deleteSecret.run(write.tx, { hash });
      // It may have been mailed before the address was given its one form.
      return { ...secret, email: deps.addressOf(email) };
    },
    check(purpose, token) {
      const hash = sealing.digest(purpose, token);
      if (findSecret.get(file.sql, { hash, purpose, now: deps.clock.now() }) === null) throw invalidMailToken();
    },
  };
}

/** The user of a token. Errors: 400 if there is none any more; 403 if disabled, which only the right token reveals. */
export function userOfToken(write: AccountWrite, secret: OneTimeSecret): SecretAccount {
  const account = secret.userId === null ? null : userById.get(write.tx, { id: secret.userId });
  if (account === null) throw invalidMailToken();
  if (account.disabled) throw accountDisabled();
  return account;
}
