import { AppError } from "../../../../kernel/errors.ts";
import type { SignUpFacts } from "../../../config/types.ts";
import { CodeBudget, type Guess } from "../means/guesses.ts";
import { newCode, takeCode } from "../sessions/codes.ts";
import type { AuthDeps, Client, SignInAnswer } from "../sessions/deps.ts";
import { issueToken, mailCode, useToken } from "../sessions/mail-tokens.ts";
import { answerSignIn, completeSignIn, guessKeys, type SignIn } from "../sessions/sign-in.ts";
import { isSignUpOpen, maySignUp, requireSignUp } from "../sessions/verification.ts";
import { userByEmail } from "../statements/users.ts";
import { type AccountWrite, accountDisabled } from "../store/account-file.ts";
import { clearUnproven } from "./credentials.ts";

// Signing in with a mailed link or code. An unknown address becomes a user whose email is verified, if the rule of sign-ups allows it.

/** Mails a link. Nothing is mailed to an address that neither has an account nor may become one; the answer is the same. */
export async function requestMagicLink(
  deps: AuthDeps,
  { email, redirect, language }: { email: string; redirect: URL | null; language: string | null },
): Promise<void> {
  // Who is revoked or disabled loses it.
  const userId = userByEmail.get(deps.file.sql, { email })?.id ?? null;
  const isMailed = await isUseful(deps, "magicLink", email);
  await issueToken(deps, { purpose: "magic-link", userId, email, isMailed, redirect, language });
}

/** Errors: 400 for a wrong, used or expired token, 403 if disabled or `Sign-up is closed`. */
export async function verifyMagicLink(deps: AuthDeps, token: string, client: Client): Promise<SignInAnswer> {
  const { email, signIn } = await deps.file.write((write) => {
    const { email } = useToken(deps, write, "magic-link", token);
    return { email, signIn: signInOwner(deps, write, { email, client, mayBecome: isSignUpOpen(deps.config) }) };
  });
  return answerSignIn(deps, signIn ?? (await becomeOwner(deps, "magicLink", email, client)));
}

/** Mails a code, to the same addresses as a link. */
export async function requestCode(
  deps: AuthDeps,
  { email, language }: { email: string; language: string | null },
): Promise<void> {
  deps.mailLimit.hit(email);
  const isMailed = await isUseful(deps, "emailOtp", email);
  const code = newCode();
  const posted = await deps.file.write((write) => {
    const userId = userByEmail.get(write.tx, { email })?.id ?? null;
    return mailCode(deps, write, { email, userId, code, isMailed, language });
  });
  await posted();
}

/** Signs in with a code, which five wrong ones end. Errors: 400, 403 if disabled or `Sign-up is closed`, 429. */
export async function verifyCode(
  deps: AuthDeps,
  { email, code }: { email: string; code: string },
  client: Client,
): Promise<SignInAnswer> {
  const budget = new CodeBudget("email-otp", email, client);
  const guess = async (): Promise<Guess<SignIn | null>> => {
    const result = await deps.file.write<SignIn | AppError | null>((write) => {
      const taken = takeCode(deps, write, { purpose: "email-otp", owner: email, code, budget });
      return taken instanceof AppError
        ? taken
        : signInOwner(deps, write, { email, client, mayBecome: isSignUpOpen(deps.config) });
    });
    return result instanceof AppError ? { isRight: false, error: result } : { isRight: true, value: result };
  };
  const about = { userId: null, email, way: "code" } as const;
  const signIn = await deps.guesses.attempt(guessKeys(deps, "email-otp", email, client), guess, about);
  return answerSignIn(deps, signIn ?? (await becomeOwner(deps, "emailOtp", email, client)));
}

type Method = "magicLink" | "emailOtp";

/**
 * Signs in the reader of a mail, who is the owner of its address. Returns null if there is no account and none may be made before the
 * rule of sign-ups has been asked. Errors: 403 if disabled.
 */
function signInOwner(
  deps: AuthDeps,
  write: AccountWrite,
  { email, client, mayBecome }: { email: string; client: Client; mayBecome: boolean },
): SignIn | null {
  const found = userByEmail.get(write.tx, { email });
  if (found === null && !mayBecome) return null;
  const { language } = client;
  const account =
    found ?? write.insert({ id: deps.ids.uuid(), email, emailVerified: true, language, hasSignedIn: true });
  if (account.disabled) throw accountDisabled();
  if (account.emailVerified) return completeSignIn(deps, write, { account, client });
  clearUnproven(write, account.id);
  return completeSignIn(deps, write, { account: write.update(account.id, { emailVerified: true }), client });
}

/** Makes the user when the link or code is used up. Errors: 403 `Sign-up is closed`, or if disabled. */
async function becomeOwner(deps: AuthDeps, method: Method, email: string, client: Client): Promise<SignIn> {
  await requireSignUp(deps, factsOf(method, email));
  const done = await deps.file.write((write) => signInOwner(deps, write, { email, client, mayBecome: true }));
  if (done === null) throw new Error("a user who may be made was not made");
  return done;
}

/**
 * Whether a mail to this address may be of use. The rule is asked for addresses with an account too, so that the time does not
 * tell them apart.
 */
async function isUseful(deps: AuthDeps, method: Method, email: string): Promise<boolean> {
  if (isSignUpOpen(deps.config)) return true;
  const isKnown = userByEmail.get(deps.file.sql, { email }) !== null;
  const mayBecome = await maySignUp(deps, factsOf(method, email));
  return isKnown || mayBecome;
}

const factsOf = (method: Method, email: string): SignUpFacts => ({
  method,
  email,
  emailVerified: true,
  displayName: null,
  metadata: {},
});
