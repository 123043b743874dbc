import { badRequest, unauthorized } from "../../../../kernel/errors.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import type { Pending as PendingShape, Tokens } from "../../../config/shapes/sign-in.ts";
import type { AccountWrite } from "../store/account-file.ts";
import type { MailDeps, MailTokens } from "../sessions/mail-tokens.ts";
import type { Posted } from "../mail/mailer.ts";
import { VERIFICATION_TTL_MS } from "../limits.ts";
import type { Caller } from "../store/caller.ts";
import { emailTaken, type OpenSession, type SignIns } from "../sessions/sign-in.ts";
import { deleteSecretsFor } from "../statements/secrets.ts";
import { type SecretAccount, userByEmail, userById } from "../statements/users.ts";
import { type Client, ownUser, sharerOf } from "../sessions/deps.ts";
import type { SignUpRule } from "../sessions/sign-up-rule.ts";
import type { Verification } from "../sessions/verification.ts";

export interface SignUp {
  email: string;
  password: string;
  displayName?: string | null | undefined;
  metadata?: JsonObject | undefined;
  /** Where the link of a mail leads. */
  redirect: URL | null;
}

/** How visitors become users by themselves: with a password, or anonymously. */
export interface SignUps {
  /** Errors: 403 `Sign-up is closed`, 409 for a known email. */
  signUp(fields: SignUp, client: Client): Promise<Tokens | PendingShape>;
  /** Errors: 403 `Sign-up is closed`. */
  signInAnonymously(client: Client): Promise<Tokens>;
  /**
   * The id stays. Where addresses have to be proved, the user stays anonymous until then. Errors: 400 for a user who is not
   * anonymous, 403 `Sign-up is closed`, 409 for a known email.
   */
  linkEmail(caller: Caller, fields: Pick<SignUp, "email" | "password" | "redirect">): Promise<Tokens | PendingShape>;
}

const invalidToken = () => unauthorized("Invalid token");
const notAnonymous = () => badRequest("Only an anonymous user can be linked, and this one has an account");

interface SignUpDeps extends MailDeps {
  rule: SignUpRule;
  verification: Verification;
  mailTokens: MailTokens;
}

interface Pending {
  account: SecretAccount;
  posted: Posted;
}

/** Called when the write is on disk. */
async function answerPending({ account, posted }: Pending): Promise<PendingShape> {
  await posted();
  return { user: ownUser(account), verificationRequired: true };
}

export function createSignUps(deps: SignUpDeps, signIns: SignIns): SignUps {
  const { file, passwords, rule, verification } = deps;

  return {
    async signUp({ email, password, displayName, metadata = {}, redirect }, client) {
      // Before anything else about the address: a closed sign-up must not tell who has an account.
      await rule.require({
        method: "password",
        email,
        emailVerified: false,
        displayName: displayName ?? null,
        metadata,
      });
      if (userByEmail.get(file.sql, { email }) !== null) throw emailTaken();
      if (verification.isRequired) deps.mailLimit.hit(email);
      const passwordHash = await passwords.hash(password, sharerOf(client));
      const insert = (write: AccountWrite): SecretAccount => {
        if (userByEmail.get(write.tx, { email }) !== null) throw emailTaken();
        const hasSignedIn = !verification.isRequired;
        return write.insert({ id: deps.ids.uuid(), email, passwordHash, displayName, metadata, hasSignedIn });
      };
      if (!verification.isRequired) {
        return signIns.tokens(await file.write((write) => signIns.open(write, insert(write), client)));
      }
      const pending = await file.write((write) => {
        const account = insert(write);
        return { account, posted: verification.mail(write, { id: account.id, email }, redirect) };
      });
      return answerPending(pending);
    },

    async signInAnonymously(client) {
      await rule.require({ method: "anonymous", email: null, emailVerified: false, displayName: null, metadata: {} });
      const session = await file.write((write) => {
        const account = write.insert({ id: deps.ids.uuid(), email: null, isAnonymous: true, hasSignedIn: true });
        return signIns.open(write, account, client);
      });
      return signIns.tokens(session);
    },

    linkEmail: createLinking(deps, signIns),
  };
}

function createLinking(deps: SignUpDeps, signIns: SignIns): SignUps["linkEmail"] {
  const { file, passwords, rule, verification } = deps;

  const linked = (write: AccountWrite, caller: Caller, email: string): SecretAccount => {
    const current = file.current(write, caller);
    if (current === null) throw invalidToken();
    if (!current.isAnonymous) throw notAnonymous();
    if (userByEmail.get(write.tx, { email }) !== null) throw emailTaken();
    return current;
  };

  return async (caller, { email, password, redirect }) => {
    const account = userById.get(file.sql, { id: caller.userId });
    if (account === null) throw invalidToken();
    if (!account.isAnonymous) throw notAnonymous();
    const { displayName, metadata } = account;
    await rule.require({ method: "password", email, emailVerified: false, displayName, metadata });
    if (userByEmail.get(file.sql, { email }) !== null) throw emailTaken();
    if (verification.isRequired) deps.mailLimit.hit(email);
    const passwordHash = await passwords.hash(password, `user:${caller.userId}`);
    if (!verification.isRequired) {
      const session = await file.write<OpenSession>((write) => {
        const { id } = linked(write, caller, email);
        const present = write.update(id, { email, passwordHash, isAnonymous: false });
        // A guest who creates an account in the middle of a game continues it.
        return signIns.renew(write, present, caller, { accessTokens: "stay" });
      });
      return signIns.tokens(session);
    }
    const pending = await file.write((write) => {
      const current = linked(write, caller, email);
      // The last address that was asked for counts.
      deleteSecretsFor.run(write.tx, { userId: current.id, purpose: "verify-email" });
      const posted = deps.mailTokens.mail(write, {
        purpose: "verify-email",
        kind: "verification",
        page: "verify-email",
        ttlMs: VERIFICATION_TTL_MS,
        userId: current.id,
        email,
        isMailed: true,
        redirect,
        // The user gets neither address nor password before the address is proved: rules trust `auth.email` then.
        payload: { passwordHash },
      });
      return { account: current, posted };
    });
    return answerPending(pending);
  };
}
