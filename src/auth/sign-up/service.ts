import { badRequest, unauthorized } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/json/json.ts";
import { emailTaken, type SignIns } from "../session/sign-in.ts";
import { userByEmail, userById } from "../statements/users.ts";
import { type AuthDeps, type Caller, type Client, sharerOf, type TokenAnswer } from "../types.ts";

export interface SignUp {
  email: string;
  password: string;
  displayName?: string | null | undefined;
  metadata?: JsonObject | undefined;
}

/** How visitors become users by themselves: with a password, or anonymously. */
export interface SignUps {
  /** Errors: 409 for a known email. */
  signUp(fields: SignUp, client: Client): Promise<TokenAnswer>;
  signInAnonymously(client: Client): Promise<TokenAnswer>;
  /** The id stays. Errors: 400 for a user who is not anonymous, 409 for a known email. */
  linkEmail(caller: Caller, email: string, password: string): Promise<TokenAnswer>;
}

const invalidToken = () => unauthorized("Invalid token");

export function createSignUps(deps: AuthDeps, signIns: SignIns): SignUps {
  const { file, passwords } = deps;

  return {
    async signUp({ email, password, displayName, metadata }, client) {
      if (userByEmail.get(file.sql, { email: email }) !== null) throw emailTaken();
      const passwordHash = await passwords.hash(password, sharerOf(client));
      const session = await file.write((write) => {
        if (userByEmail.get(write.tx, { email: email }) !== null) throw emailTaken();
        const account = write.insert({
          id: deps.ids.uuid(),
          email,
          passwordHash,
          displayName,
          metadata,
          hasSignedIn: true,
        });
        return signIns.open(write, account, client);
      });
      return signIns.tokens(session);
    },

    async signInAnonymously(client) {
      const session = await file.write((write) => {
        const account = write.insert({ id: deps.ids.uuid(), email: null, isAnonymous: true, hasSignedIn: true });
        return signIns.open(write, account, client);
      });
      return signIns.tokens(session);
    },

    async linkEmail(caller, email, password) {
      const account = userById.get(file.sql, { id: caller.userId });
      if (account === null) throw invalidToken();
      if (!account.isAnonymous) throw badRequest("Only an anonymous user can be linked, and this one has an account");
      if (userByEmail.get(file.sql, { email: email }) !== null) throw emailTaken();
      const passwordHash = await passwords.hash(password, `user:${caller.userId}`);
      const session = await file.write((write) => {
        const current = file.current(write, caller.userId, caller.sessionId);
        if (current === null) throw invalidToken();
        if (!current.isAnonymous) throw badRequest("Only an anonymous user can be linked, and this one has an account");
        if (userByEmail.get(write.tx, { email: email }) !== null) throw emailTaken();
        const linked = write.update(caller.userId, { email, passwordHash, isAnonymous: false });
        // A guest who creates an account in the middle of a game continues it.
        return signIns.renew(write, linked, caller, { accessTokens: "stay" });
      });
      return signIns.tokens(session);
    },
  };
}
