import { randomInt } from "node:crypto";
import { AppError, badField } from "../../../../kernel/errors.ts";
import { EMAIL_CODE_ATTEMPTS_MAX, EMAIL_CODE_DIGITS, EMAIL_CODE_TTL_MS, MAGIC_LINK_TTL_MS } from "../limits.ts";
import { codeBudget } from "../means/code-budget.ts";
import type { Guess } from "../means/guesses.ts";
import { equalsConstantTime } from "../store/sealing.ts";
import type { SignIn, SignIns } from "../sessions/sign-in.ts";
import type { SignUpRule } from "../sessions/sign-up-rule.ts";
import { countAttempt, deleteSecret, findSecret, putSecret } from "../statements/secrets.ts";
import { userByEmail } from "../statements/users.ts";
import type { Client, SignInAnswer } from "../sessions/deps.ts";
import type { MailDeps, MailTokens } from "../sessions/mail-tokens.ts";
import { createOwners } from "./owners.ts";

/** Signing in with a mailed link or code. An unknown address becomes a user whose email is verified, if the rule allows it. */
export interface MailSignInService {
  /** Nothing is mailed to an address that neither has an account nor may become one; the answer is the same. */
  requestMagicLink(email: string, redirect: URL | null): Promise<void>;
  /** Errors: 400 for a wrong, used or expired token, 403 if disabled or `Sign-up is closed`. */
  verifyMagicLink(token: string, client: Client): Promise<SignInAnswer>;
  requestCode(email: string): Promise<void>;
  /** Five wrong codes end the code. Errors: 400, 403 if disabled or `Sign-up is closed`, 429. */
  verifyCode(email: string, code: string, client: Client): Promise<SignInAnswer>;
}

const invalidCode = () => badField("code", "invalid_value", "code is wrong, used or expired");

export function createMailSignInService(
  deps: MailDeps & { rule: SignUpRule },
  tokens: MailTokens,
  signIns: SignIns,
): MailSignInService {
  const { file, sealing } = deps;

  const { signInOwner, become, isMailed } = createOwners(deps, signIns);
  const codeHash = (email: string, code: string) => sealing.digest("email-otp-code", `${email}:${code}`);

  return {
    async requestMagicLink(email, redirect) {
      await tokens.issue({
        purpose: "magic-link",
        kind: "magicLink",
        page: "magic-link",
        ttlMs: MAGIC_LINK_TTL_MS,
        // Who is revoked or disabled loses it.
        userId: userByEmail.get(file.sql, { email })?.id ?? null,
        email,
        isMailed: await isMailed("magicLink", email),
        redirect,
      });
    },

    async verifyMagicLink(token, client) {
      const { email, signIn } = await file.write((write) => {
        const { email } = tokens.use(write, "magic-link", token);
        return { email, signIn: signInOwner(write, email, client) };
      });
      return signIns.answer(signIn ?? (await become("magicLink", email, client)));
    },

    async requestCode(email) {
      deps.mailLimit.hit(email);
      const mayMail = await isMailed("emailOtp", email);
      const code = String(randomInt(10 ** EMAIL_CODE_DIGITS)).padStart(EMAIL_CODE_DIGITS, "0");
      const values = { email, code };
      const delivery = mayMail ? "mail" : "none";
      const posted = await file.write((write) => {
        putSecret.run(write.tx, {
          hash: sealing.digest("email-otp", email),
          purpose: "email-otp",
          userId: userByEmail.get(write.tx, { email })?.id ?? null,
          payload: { code: codeHash(email, code).toString("base64") },
          expiresAt: write.now + EMAIL_CODE_TTL_MS,
        });
        return deps.mailer.post(write.tx, { kind: "emailOtp", values, ttlMs: EMAIL_CODE_TTL_MS, delivery });
      });
      await posted();
    },

    async verifyCode(email, code, client) {
      const hash = sealing.digest("email-otp", email);
      const given = codeHash(email, code.trim());
      const budget = codeBudget("email-otp", email, client);
      const guess = async (): Promise<Guess<SignIn | null>> => {
        // A wrong attempt must be counted, so it is a result of the write and not a throw.
        const result = await file.write<SignIn | AppError | null>((write) => {
          const secret = findSecret.get(write.tx, { hash, purpose: "email-otp", now: write.now });
          const expected = secret?.payload["code"];
          if (secret === null || typeof expected !== "string") return invalidCode();
          const refusal = budget.refusal(write);
          if (refusal !== null) return refusal;
          if (!equalsConstantTime(Buffer.from(expected, "base64"), given)) {
            if (secret.attempts + 1 >= EMAIL_CODE_ATTEMPTS_MAX) deleteSecret.run(write.tx, { hash });
            else countAttempt.run(write.tx, { hash });
            // Without a mailed code no guess can be right, and the budget does not shrink.
            budget.count(write);
            return invalidCode();
          }
          deleteSecret.run(write.tx, { hash });
          return signInOwner(write, email, client);
        });
        return result instanceof AppError ? { isRight: false, error: result } : { isRight: true, value: result };
      };
      const signIn = await deps.guesses.attempt(signIns.guessKeys("email-otp", email, client), guess, {
        userId: null,
        email,
        way: "code",
      });
      return signIns.answer(signIn ?? (await become("emailOtp", email, client)));
    },
  };
}
