import type { SignUpFacts } from "../../../config/types.ts";
import { type AccountWrite, accountDisabled } from "../store/account-file.ts";
import type { SignIn, SignIns } from "../sessions/sign-in.ts";
import type { SignUpRule } from "../sessions/sign-up-rule.ts";
import { userByEmail } from "../statements/users.ts";
import type { AuthDeps, Client } from "../sessions/deps.ts";
import { clearUnproven } from "./unproven.ts";

type Method = "magicLink" | "emailOtp";

/** Readers of a mail that signs in: they are the owners of its address. */
export interface Owners {
  /** null: the address has no account, and the rule for sign-ups has to be asked: `become`. Errors: 403 if disabled. */
  signInOwner(write: AccountWrite, email: string, client: Client): SignIn | null;
  /** Called when the link or code is used up. Errors: 403 `Sign-up is closed`, or if disabled. */
  become(method: Method, email: string, client: Client): Promise<SignIn>;
  /**
   * Whether a mail to this address may be of use. The rule is asked for addresses with an account too, so that the time does not
   * tell them apart.
   */
  isMailed(method: Method, email: string): Promise<boolean>;
}

export function createOwners(deps: AuthDeps & { rule: SignUpRule }, signIns: SignIns): Owners {
  const { file, rule } = deps;

  /** null: there is no account, and none may be made. */
  const signIn = (write: AccountWrite, email: string, client: Client, mayBecome: boolean): SignIn | null => {
    const found = userByEmail.get(write.tx, { email });
    if (found === null && !mayBecome) return null;
    const account = found ?? write.insert({ id: deps.ids.uuid(), email, emailVerified: true, hasSignedIn: true });
    if (account.disabled) throw accountDisabled();
    if (account.emailVerified) return signIns.complete(write, account, client);
    clearUnproven(write, account.id);
    return signIns.complete(write, write.update(account.id, { emailVerified: true }), client);
  };
  const factsOf = (method: Method, email: string): SignUpFacts => ({
    method,
    email,
    emailVerified: true,
    displayName: null,
    metadata: {},
  });
  return {
    signInOwner: (write, email, client) => signIn(write, email, client, rule.isOpen),
    async become(method, email, client) {
      await rule.require(factsOf(method, email));
      const done = await file.write((write) => signIn(write, email, client, true));
      if (done === null) throw new Error("a user who may be made was not made");
      return done;
    },
    async isMailed(method, email) {
      if (rule.isOpen) return true;
      const isKnown = userByEmail.get(file.sql, { email }) !== null;
      const mayBecome = await rule.allows(factsOf(method, email));
      return isKnown || mayBecome;
    },
  };
}
