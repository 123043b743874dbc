import { AppError, forbidden } from "../../../../kernel/errors.ts";
import { within } from "../../../../kernel/time/deadline.ts";
import type { Account } from "../../../access/accounts.ts";
import { RULE_TIMEOUT_MS } from "../../../access/limits.ts";
import type { AuthConfig, SignUpFacts } from "../../../config/types.ts";
import { VERIFICATION_PAUSE_MS, VERIFICATION_TTL_MS } from "../limits.ts";
import type { Posted } from "../mail/mailer.ts";
import { recentSecret } from "../statements/secrets.ts";
import { userById } from "../statements/users.ts";
import type { AccountWrite } from "../store/account-file.ts";
import type { AuthDeps } from "./deps.ts";
import { mailToken } from "./mail-tokens.ts";

// What the config asks before somebody gets an account or tokens: `auth.signup` [AU201] and `auth.requireVerifiedEmail` [AU204].

/** Whether everybody may sign up: there is nothing to ask. */
export const isSignUpOpen = ({ signup = true }: AuthConfig): boolean => signup === true;

/**
 * Asks the rule of sign-ups whether this visitor may become a user. A rule that throws, or that has no answer within five seconds,
 * denies, and is logged. Errors: 503 for too many lookups.
 */
export async function maySignUp({ config, lookups, clock, logger }: AuthDeps, facts: SignUpFacts): Promise<boolean> {
  const { signup: rule = true } = config;
  if (typeof rule === "boolean") return rule;
  const call = lookups().begin();
  // The rule gets copies: what it changes is not what becomes of the user.
  const asked = async () => rule(structuredClone(facts), call.context(null));
  const answer = await within(clock, RULE_TIMEOUT_MS, asked()).catch((cause: unknown) => {
    logger.error("An access rule threw", { rule: "auth.signup", cause });
    return false;
  });
  call.check();
  return answer === true;
}

/** Errors: 403 `Sign-up is closed`; those of `maySignUp`. */
export async function requireSignUp(deps: AuthDeps, facts: SignUpFacts): Promise<void> {
  if (!(await maySignUp(deps, facts))) throw forbidden("Sign-up is closed");
}

/** Whether there are no tokens before the address is proved. */
export const isProofRequired = ({ requireVerifiedEmail }: AuthConfig): boolean => requireVerifiedEmail === true;

/**
 * Whether this account must prove its address before it gets tokens. Anonymous users have none to prove; a verified number suffices
 * without an address, and not beside an unverified one: rules trust the address of whoever has tokens.
 */
export const isUnproved = (config: AuthConfig, { isAnonymous, email, emailVerified, phone }: Account): boolean =>
  isProofRequired(config) && !isAnonymous && !emailVerified && (email !== null || phone === null);

/** The answer to whoever has to prove an address first. */
export const emailNotVerified = () => forbidden("Email not verified");

/** Mails the link again, at most once a minute, and returns the answer to a sign-in that has to wait for it. */
export async function remind(deps: AuthDeps, { id, email }: Account, redirect: URL | null): Promise<AppError> {
  if (email === null) return forbidden("Email required");
  try {
    deps.mailLimit.check(email);
  } catch (cause) {
    // The answer stays the same: mails to this address have been asked for elsewhere.
    if (cause instanceof AppError) return emailNotVerified();
    throw cause;
  }
  const posted = await deps.file.write((write) => mailDue(deps, write, { userId: id, email, redirect }));
  if (posted !== null) {
    deps.mailLimit.count(email);
    await posted();
  }
  return emailNotVerified();
}

/** Mails the link if it is due; null: it is not. */
function mailDue(
  deps: AuthDeps,
  write: AccountWrite,
  link: { userId: string; email: string; redirect: URL | null },
): Posted | null {
  const present = userById.get(write.tx, { id: link.userId });
  if (present === null || present.email !== link.email || present.emailVerified) return null;
  const expiresAt = write.now + VERIFICATION_TTL_MS;
  // From the file, so that restarts allow no more mails. A clock that was set back counts as a minute that is over.
  const bounds = { after: expiresAt - VERIFICATION_PAUSE_MS, upTo: expiresAt };
  const recent = recentSecret.get(write.tx, { userId: link.userId, purpose: "verify-email", ...bounds });
  return recent === null ? mailToken(deps, write, { purpose: "verify-email", ...link }) : null;
}
