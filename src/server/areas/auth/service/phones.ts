import { AppError, conflict } from "../../../../kernel/errors.ts";
import type { SignUpFacts } from "../../../config/types.ts";
import type { Readable } from "../../../db/query.ts";
import { CodeBudget, type Guess } from "../means/guesses.ts";
import { invalidCode, keepPhoneCode, newCode, takeCode } from "../sessions/codes.ts";
import type { AuthDeps, Client, PhoneDeps, SignInAnswer } from "../sessions/deps.ts";
import { answerSignIn, completeSignIn, guessKeys, invalidToken, type SignIn } from "../sessions/sign-in.ts";
import { isSignUpOpen, maySignUp, requireSignUp } from "../sessions/verification.ts";
import { requireOtherWayIn, requireRecentProof } from "../sessions/ways-in.ts";
import { deleteSecretsFor } from "../statements/secrets.ts";
import { userByPhone } from "../statements/users.ts";
import { type AccountWrite, accountDisabled, type Caller, currentAccount } from "../store/account-file.ts";
import { removePhone } from "./credentials.ts";
import { requirePhoneProof } from "./phone-factors.ts";

// Signing in with a code that is sent to a phone, and the number of an account. A number is stored once its owner has typed a code.

/**
 * Sends a code that signs in. Nothing is sent to a number that neither has an account nor may become one; the answer, its time and
 * the bounds are the same. Errors: 429 for too many texts to the number, or of the server.
 */
export async function requestPhoneCode(
  deps: PhoneDeps,
  { phone, language }: { phone: string; language: string | null },
): Promise<void> {
  deps.texts.count("sign-in", phone);
  const isKnown = userByPhone.get(deps.file.sql, { phone }) !== null;
  // The rule is asked for numbers with an account too, so that the time does not tell them apart.
  const isSent = isSignUpOpen(deps.config) || (await maySignUp(deps, factsOf(phone))) || isKnown;
  const code = newCode();
  const account = await deps.file.write((write) => {
    const account = userByPhone.get(write.tx, { phone });
    keepPhoneCode(deps, write, { purpose: "phone-otp", owner: phone, userId: account?.id ?? null, code, phone });
    return account;
  });
  if (isSent) deps.texts.send("sign-in", { number: phone, code, language: account?.language ?? language });
}

/** Signs in with a code, which five wrong ones end. Errors: 400, 403 if disabled or `Sign-up is closed`, 429. */
export async function verifyPhoneCode(
  deps: AuthDeps,
  { phone, code }: { phone: string; code: string },
  client: Client,
): Promise<SignInAnswer> {
  const budget = new CodeBudget("phone-otp", phone, client);
  const guess = async (): Promise<Guess<SignIn | null>> => {
    const result = await deps.file.write<SignIn | AppError | null>((write) => {
      const taken = takeCode(deps, write, { purpose: "phone-otp", owner: phone, code, budget });
      return taken instanceof AppError
        ? taken
        : signInOwner(deps, write, { phone, client, mayBecome: isSignUpOpen(deps.config) });
    });
    return result instanceof AppError ? { isRight: false, error: result } : { isRight: true, value: result };
  };
  const userId = userByPhone.get(deps.file.sql, { phone })?.id ?? null;
  const about = { userId, email: null, way: "code" } as const;
  const signIn = await deps.guesses.attempt(guessKeys(deps, "phone-otp", phone, client), guess, about);
  return answerSignIn(deps, signIn ?? (await becomeOwner(deps, phone, client)));
}

/**
 * Signs in the owner of a number. Returns null if there is no account and none may be made before the rule of sign-ups has been
 * asked. Errors: 403 if disabled.
 */
function signInOwner(
  deps: AuthDeps,
  write: AccountWrite,
  { phone, client, mayBecome }: { phone: string; client: Client; mayBecome: boolean },
): SignIn | null {
  const found = userByPhone.get(write.tx, { phone });
  if (found === null && !mayBecome) return null;
  const { language } = client;
  const account = found ?? write.insert({ id: deps.ids.uuid(), email: null, phone, language, hasSignedIn: true });
  if (account.disabled) throw accountDisabled();
  return completeSignIn(deps, write, { account, client, by: "phone" });
}

/** Makes the user when the code is used up. Errors: 403 `Sign-up is closed`, or if disabled. */
async function becomeOwner(deps: AuthDeps, phone: string, client: Client): Promise<SignIn> {
  await requireSignUp(deps, factsOf(phone));
  const done = await deps.file.write((write) => signInOwner(deps, write, { phone, client, mayBecome: true }));
  if (done === null) throw new Error("a user who may be made was not made");
  return done;
}

/**
 * Sends a code to a number that is to become the caller's, also where another account has it: that is told to who has the code.
 * `proof`: a code of a factor, where the phone is one. Errors: 400 without it, 401 without a recent sign-in, 403 `Sign-up is closed` for an
 * anonymous user, 429.
 */
export async function requestPhoneChange(
  deps: PhoneDeps,
  caller: Caller,
  client: Client,
  { phone, proof }: { phone: string; proof: string | undefined },
): Promise<void> {
  const { isAnonymous } = requireRecentProof(deps.file.sql, caller, deps.config, deps.clock.now());
  deps.phoneLimit.hit(caller.userId);
  if (isAnonymous) await requireSignUp(deps, factsOf(phone));
  deps.texts.count("change", phone);
  const checkProof = await requirePhoneProof(deps, caller, client, proof);
  const code = newCode();
  const account = await deps.file.write((write) => {
    const account = requireRecentProof(write.tx, caller, deps.config, write.now);
    checkProof(write);
    keepPhoneCode(deps, write, { purpose: "phone-change", owner: account.id, userId: account.id, code, phone });
    return account;
  });
  deps.texts.send("change", { number: phone, code, language: account.language ?? client.language });
}

/** Gives the caller the number of the code. Errors: 400 for a wrong, used or expired code, 409 if another account has it, 429. */
export async function verifyPhoneChange(deps: AuthDeps, caller: Caller, code: string, client: Client): Promise<void> {
  const { userId } = caller;
  const budget = new CodeBudget("phone-change", userId, client);
  const guess = async (): Promise<Guess<null>> => {
    const refusal = await deps.file.write<AppError | null>((write) => {
      const account = currentAccount(write, caller);
      if (account === null) throw invalidToken();
      const taken = takeCode(deps, write, { purpose: "phone-change", owner: userId, code, budget });
      if (taken instanceof AppError) return taken;
      const { phone } = taken.payload;
      if (typeof phone !== "string") return invalidCode();
      const other = userByPhone.get(write.tx, { phone });
      if (other !== null && other.id !== userId) throw phoneTaken("newPhone");
      write.update(userId, { phone, isAnonymous: false });
      write.auditByUser(userId, "factor.add", { type: "phone" });
      return null;
    });
    return refusal === null ? { isRight: true, value: null } : { isRight: false, error: refusal };
  };
  const about = { userId, email: null, way: "code" } as const;
  await deps.guesses.attempt(guessKeys(deps, "phone-change", userId, client), guess, about);
}

/**
 * Removes the caller's number, and the factor that it is. `proof`: see `requestPhoneChange`. Errors: those; 409 if nothing would be left to
 * sign in with.
 */
export async function removeOwnPhone(
  deps: AuthDeps,
  caller: Caller,
  client: Client,
  proof: string | undefined,
): Promise<void> {
  const requireRemovable = (sql: Readable): void => {
    const account = requireRecentProof(sql, caller, deps.config, deps.clock.now());
    if (account.phone !== null) requireOtherWayIn(sql, { ...account, phone: null }, deps.config, "");
  };
  requireRemovable(deps.file.sql);
  const checkProof = await requirePhoneProof(deps, caller, client, proof);
  await deps.file.write((write) => {
    requireRemovable(write.tx);
    checkProof(write);
    deleteSecretsFor.run(write.tx, { userId: caller.userId, purpose: "phone-change" });
    removePhone(write, caller.userId);
  });
}

const factsOf = (phone: string): SignUpFacts => ({
  method: "phone",
  phone,
  email: null,
  emailVerified: false,
  displayName: null,
  metadata: {},
});

/** 409 for a number that another account has. */
export function phoneTaken(field: string): AppError {
  const message = "This phone number already has an account";
  return conflict(message, { [field]: { code: "not_unique", message } });
}
