import { randomInt } from "node:crypto";
import type { RateLimiter } from "../../http/rate-limit.ts";
import { type AppError, badField, badRequest, unauthorized } from "../../kernel/errors.ts";
import { type AccountWrite, accountDisabled } from "../account-file.ts";
import {
  EMAIL_CODE_ATTEMPTS_MAX,
  EMAIL_CODE_TTL_MS,
  MAGIC_LINK_TTL_MS,
  RESET_TTL_MS,
  VERIFICATION_TTL_MS,
} from "../limits.ts";
import { codeBudget } from "../password/code-budget.ts";
import type { Guess } from "../password/guesses.ts";
import { equalsConstantTime } from "../sealing.ts";
import { emailTaken, type SignIn, type SignIns } from "../session/sign-in.ts";
import { deleteUnverifiedFactors } from "../statements/factors.ts";
import { deleteIdentitiesOfUser } from "../statements/identities.ts";
import { deletePasskeysOfUser } from "../statements/passkeys.ts";
import {
  countAttempt,
  deleteSecret,
  deleteSecretsOfUser,
  findSecret,
  type OneTimeSecret,
  putSecret,
  type SecretPurpose,
} from "../statements/secrets.ts";
import { clearPassword, type SecretAccount, userByEmail, userById } from "../statements/users.ts";
import { type AuthDeps, type Caller, type Client, type SignInAnswer, sharerOf } from "../types.ts";
import type { Mailer } from "./mailer.ts";
import type { MailKind } from "./templates.ts";

const TOKEN_BYTES = 32;
const CODE_DIGITS = 6;

/** Everything that a mail has a part in. Tokens and codes are good once, also when two requests race. Decisions 6. */
export interface EmailFlows {
  /** No mail when the address is verified already. Errors: 400 for a user without an address. */
  requestVerification(caller: Caller, redirect: URL | null): Promise<void>;
  /** Errors: 400 for a wrong, used or expired token; so for all that take one. 403 when disabled. */
  verifyEmail(token: string): Promise<void>;
  /** The same answer, in the same time, whether there is such a user or not. */
  requestPasswordReset(email: string, redirect: URL | null): Promise<void>;
  /**
   * Ends every session. Passkeys go too unless `keepPasskeys`: who resets a password because somebody else was in expects that
   * nobody else gets in again.
   */
  resetPassword(token: string, newPassword: string, options: { keepPasskeys: boolean; client: Client }): Promise<void>;
  requestMagicLink(email: string, redirect: URL | null): Promise<void>;
  /** An unknown address becomes a user whose email is verified. */
  verifyMagicLink(token: string, client: Client): Promise<SignInAnswer>;
  requestCode(email: string): Promise<void>;
  /** Five wrong codes end the code. Errors: 400, 429. */
  verifyCode(email: string, code: string, client: Client): Promise<SignInAnswer>;
  /** The password has been confirmed before. Errors: 409 when another account has the address. */
  requestEmailChange(caller: Caller, newEmail: string, redirect: URL | null): Promise<void>;
  /** Ends every session. Errors: 409 when another account has taken the address meanwhile. */
  verifyEmailChange(token: string): Promise<void>;
}

interface EmailFlowDeps extends AuthDeps {
  mailer: Mailer;
  /** Mails to one address. */
  mailLimit: RateLimiter;
  publicUrl: () => string;
}

const invalidToken = () => badField("token", "invalid_value", "token is wrong, used or expired");
const invalidCode = () => badField("code", "invalid_value", "code is wrong, used or expired");
const endedSession = () => unauthorized("Invalid token");

export function createEmailFlows(deps: EmailFlowDeps, signIns: SignIns): EmailFlows {
  const tokens = createMailTokens(deps);
  return {
    ...createAddressFlows(deps, tokens),
    ...createPasswordReset(deps, tokens),
    ...createMailSignIns(deps, tokens, signIns),
  };
}

interface MailTokens {
  /** Makes a token, and mails it where `to` is given; without it, the same work is done for nobody. */
  issue(options: {
    purpose: SecretPurpose;
    kind: MailKind;
    page: string;
    userId: string | null;
    email: string;
    isMailed: boolean;
    ttlMs: number;
    redirect: URL | null;
  }): Promise<void>;
  /** The secret, which is used up now. Errors: 400. */
  use(write: AccountWrite, purpose: SecretPurpose, token: string): OneTimeSecret & { email: string };
  /** Whether it could be used, without doing so. Errors: 400. */
  check(purpose: SecretPurpose, token: string): void;
}

function createMailTokens(deps: EmailFlowDeps): MailTokens {
  const { file, sealing } = deps;
  return {
    async issue({ purpose, kind, page, userId, email, isMailed, ttlMs, redirect }) {
      deps.mailLimit.hit(email);
      const token = deps.ids.secret(TOKEN_BYTES);
      await file.write((write) => {
        const expiresAt = write.now + ttlMs;
        putSecret.run(write.tx, {
          hash: sealing.digest(purpose, token),
          purpose,
          userId,
          payload: { email },
          expiresAt,
        });
      });
      if (!isMailed) return;
      // Never from the Host header: whoever sends a request must not choose where its links lead.
      const link = new URL(redirect ?? `${deps.publicUrl()}/auth/${page}`);
      link.searchParams.set("token", token);
      deps.mailer.send(kind, { email, link: link.href });
    },
    use(write, purpose, token) {
      const hash = sealing.digest(purpose, token);
      const secret = findSecret.get(write.tx, { hash, purpose, now: write.now });
      const email = secret?.payload["email"];
      if (secret === null || typeof email !== "string") throw invalidToken();
      deleteSecret.run(write.tx, { hash });
      return { ...secret, email };
    },
    check(purpose, token) {
      if (findSecret.get(file.sql, { hash: sealing.digest(purpose, token), purpose, now: deps.clock.now() }) === null) {
        throw invalidToken();
      }
    },
  };
}

/** The user of a token. Errors: 400 when there is none any more, 403 when disabled: only the right token learns of it. */
function userOf(write: AccountWrite, secret: OneTimeSecret): SecretAccount {
  const account = secret.userId === null ? null : userById.get(write.tx, { id: secret.userId });
  if (account === null) throw invalidToken();
  if (account.disabled) throw accountDisabled();
  return account;
}

/**
 * For the owner of an address that was not verified, who has just read a mail to it. Somebody else may have registered it
 * and wait: no way in that they have set stays. A verified factor does, which no way of signing in goes round.
 */
function clearUnproven(write: AccountWrite, userId: string): void {
  write.endSessions(userId, { except: null });
  deleteUnverifiedFactors.run(write.tx, { userId });
  deleteSecretsOfUser.run(write.tx, { userId: userId });
  clearPassword.run(write.tx, { id: userId });
  deleteIdentitiesOfUser.run(write.tx, { userId });
  deletePasskeysOfUser.run(write.tx, { userId });
}

function createAddressFlows(
  deps: EmailFlowDeps,
  tokens: MailTokens,
): Pick<EmailFlows, "requestVerification" | "verifyEmail" | "requestEmailChange" | "verifyEmailChange"> {
  const { file } = deps;
  return {
    async requestVerification(caller, redirect) {
      const account = userById.get(file.sql, { id: caller.userId });
      if (account === null) throw endedSession();
      if (account.email === null) throw badRequest("This user has no email address");
      if (account.emailVerified) return;
      await tokens.issue({
        ...{ purpose: "verify-email", kind: "verification", page: "verify-email", ttlMs: VERIFICATION_TTL_MS },
        ...{ userId: account.id, email: account.email, isMailed: true, redirect },
      });
    },

    async verifyEmail(token) {
      await file.write((write) => {
        const secret = tokens.use(write, "verify-email", token);
        const account = userOf(write, secret);
        // A link to an address that the user has left behind proves nothing of the present one.
        if (account.email !== secret.email) throw invalidToken();
        write.update(account.id, { emailVerified: true });
      });
    },

    async requestEmailChange(caller, newEmail, redirect) {
      if (userByEmail.get(file.sql, { email: newEmail }) !== null) throw emailTaken("newEmail");
      await tokens.issue({
        ...{ purpose: "email-change", kind: "emailChange", page: "verify-email-change", ttlMs: VERIFICATION_TTL_MS },
        ...{ userId: caller.userId, email: newEmail, isMailed: true, redirect },
      });
    },

    async verifyEmailChange(token) {
      await file.write((write) => {
        const secret = tokens.use(write, "email-change", token);
        const account = userOf(write, secret);
        const other = userByEmail.get(write.tx, { email: secret.email });
        if (other !== null && other.id !== account.id) throw emailTaken();
        write.update(account.id, { email: secret.email, emailVerified: true, isAnonymous: false });
        write.endSessions(account.id, { except: null });
        deleteSecretsOfUser.run(write.tx, { userId: account.id });
      });
    },
  };
}

function createPasswordReset(
  deps: EmailFlowDeps,
  tokens: MailTokens,
): Pick<EmailFlows, "requestPasswordReset" | "resetPassword"> {
  const { file } = deps;
  return {
    async requestPasswordReset(email, redirect) {
      const account = userByEmail.get(file.sql, { email: email });
      await tokens.issue({
        ...{ purpose: "reset-password", kind: "passwordReset", page: "reset-password", ttlMs: RESET_TTL_MS },
        ...{ userId: account?.id ?? null, email, isMailed: account !== null, redirect },
      });
    },

    async resetPassword(token, newPassword, { keepPasskeys, client }) {
      tokens.check("reset-password", token);
      const passwordHash = await deps.passwords.hash(newPassword, sharerOf(client));
      await file.write((write) => {
        const secret = tokens.use(write, "reset-password", token);
        const account = userOf(write, secret);
        if (account.email !== secret.email) throw invalidToken();
        if (!account.emailVerified) clearUnproven(write, account.id);
        if (!keepPasskeys) deletePasskeysOfUser.run(write.tx, { userId: account.id });
        write.update(account.id, { passwordHash, emailVerified: true });
        write.endSessions(account.id, { except: null });
        deleteSecretsOfUser.run(write.tx, { userId: account.id });
      });
    },
  };
}

function createMailSignIns(
  deps: EmailFlowDeps,
  tokens: MailTokens,
  signIns: SignIns,
): Pick<EmailFlows, "requestMagicLink" | "verifyMagicLink" | "requestCode" | "verifyCode"> {
  const { file, sealing } = deps;

  /** Who has read a mail to `email` is its owner. */
  const signInOwner = (write: AccountWrite, email: string, client: Client): SignIn => {
    const found = userByEmail.get(write.tx, { email: email });
    const account = found ?? write.insert({ id: deps.ids.uuid(), email, emailVerified: true });
    if (account.disabled) throw accountDisabled();
    if (account.emailVerified) return signIns.complete(write, account, client);
    clearUnproven(write, account.id);
    return signIns.complete(write, write.update(account.id, { emailVerified: true }), client);
  };
  const codeHash = (email: string, code: string) => sealing.digest("email-otp-code", `${email}:${code}`);

  return {
    async requestMagicLink(email, redirect) {
      await tokens.issue({
        ...{ purpose: "magic-link", kind: "magicLink", page: "magic-link", ttlMs: MAGIC_LINK_TTL_MS },
        ...{ userId: null, email, isMailed: true, redirect },
      });
    },

    async verifyMagicLink(token, client) {
      const signIn = await file.write((write) => {
        const { email } = tokens.use(write, "magic-link", token);
        return signInOwner(write, email, client);
      });
      return signIns.answer(signIn);
    },

    async requestCode(email) {
      deps.mailLimit.hit(email);
      const code = String(randomInt(10 ** CODE_DIGITS)).padStart(CODE_DIGITS, "0");
      await file.write((write) => {
        putSecret.run(write.tx, {
          hash: sealing.digest("email-otp", email),
          ...{ purpose: "email-otp", userId: null, expiresAt: write.now + EMAIL_CODE_TTL_MS },
          payload: { code: codeHash(email, code).toString("base64") },
        });
      });
      deps.mailer.send("emailOtp", { email, code });
    },

    async verifyCode(email, code, client) {
      const hash = sealing.digest("email-otp", email);
      const given = codeHash(email, code.trim());
      const budget = codeBudget("email-otp", email, client);
      const guess = async (): Promise<Guess<SignIn>> => {
        // A wrong attempt has to be counted, so it is a result of the write and not a throw.
        const result = await file.write<SignIn | AppError>((write) => {
          const secret = findSecret.get(write.tx, { hash, purpose: "email-otp", now: write.now });
          const expected = secret?.payload["code"];
          if (secret === null || typeof expected !== "string") return invalidCode();
          const refusal = budget.refusal(write);
          if (refusal !== null) return refusal;
          if (!equalsConstantTime(Buffer.from(expected, "base64"), given)) {
            if (secret.attempts + 1 >= EMAIL_CODE_ATTEMPTS_MAX) deleteSecret.run(write.tx, { hash });
            else countAttempt.run(write.tx, { hash });
            // Where no code has been mailed there is none to meet, and nobody's budget shrinks.
            budget.count(write);
            return invalidCode();
          }
          deleteSecret.run(write.tx, { hash });
          return signInOwner(write, email, client);
        });
        return "kind" in result ? { isRight: true, value: result } : { isRight: false, error: result };
      };
      return signIns.answer(await deps.guesses.attempt(signIns.guessKeys(email, client), guess));
    },
  };
}
