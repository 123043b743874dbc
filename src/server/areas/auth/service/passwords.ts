import { pause } from "../../../../kernel/clock.ts";
import { type AppError, unauthorized } from "../../../../kernel/errors.ts";
import type { Tokens } from "../../../config/shapes/sign-in.ts";
import { accountDisabled } from "../store/account-file.ts";
import { REFUSAL_MS } from "../limits.ts";
import type { Caller } from "../store/caller.ts";
import type { GuessUse, SignIn, SignIns } from "../sessions/sign-in.ts";
import { deleteSecretsFor } from "../statements/secrets.ts";
import { type SecretAccount, userByEmail, userById } from "../statements/users.ts";
import { type AuthDeps, type Client, type SignInAnswer, sharerOf } from "../sessions/deps.ts";
import type { Guess } from "../means/guesses.ts";

/** Accounts with a password. */
export interface PasswordService {
  /** Errors: 401 `Invalid email or password`, 403 `Account is disabled` or `Email not verified`, 429. */
  signIn(fields: { email: string; password: string; redirect: URL | null }, client: Client): Promise<SignInAnswer>;
  /** Every other session ends. Errors: 401 for a wrong current password, 429. */
  changePassword(caller: Caller, client: Client, current: string, next: string): Promise<Tokens>;
  /** The caller's account, if this is its password. Errors: 401, 429. */
  confirmPassword(caller: Caller, client: Client, password: string): Promise<SecretAccount>;
}

/** An account whose password was given. `isOutdated`: the hash of it is replaced. */
interface Proved {
  account: SecretAccount;
  isOutdated: boolean;
}

const invalidToken = () => unauthorized("Invalid token");

export function createPasswordService(deps: AuthDeps, signIns: SignIns): PasswordService {
  const { file, passwords, guesses, clock } = deps;

  /** The account that `password` opens. The time is the same whether there is one or not, and whatever hash it has. */
  const prove = async (
    { email, password }: { email: string; password: string },
    { use, client, error }: { use: GuessUse; client: Client; error: AppError },
  ): Promise<Proved> => {
    let refusedAt = 0;
    const about = { userId: null as string | null, email, way: "password" as const };
    const guess = async (): Promise<Guess<Proved>> => {
      const account = userByEmail.get(file.sql, { email: email });
      about.userId = account?.id ?? null;
      const { isRight, isOutdated, beganAt } = await passwords.verify(
        password,
        account?.passwordHash ?? null,
        sharerOf(client),
      );
      refusedAt = beganAt + REFUSAL_MS;
      return isRight && account !== null ? { isRight, value: { account, isOutdated } } : { isRight: false, error };
    };
    return guesses.attempt(signIns.guessKeys(use, email, client), guess, about).catch(async (cause: unknown) => {
      // Judged already, so that it holds up no other guess.
      if (cause === error) await pause(clock, Math.min(REFUSAL_MS, Math.max(0, refusedAt - clock.now())));
      throw cause;
    });
  };

  const confirmPassword: PasswordService["confirmPassword"] = async (caller, client, password) => {
    const email = userById.get(file.sql, { id: caller.userId })?.email ?? null;
    const wrong = unauthorized("Invalid password");
    if (email === null) throw wrong;
    return (await prove({ email, password }, { use: "confirmation", client, error: wrong })).account;
  };

  const signIn: PasswordService["signIn"] = async (fields, client) => {
    const { email, password, redirect } = fields;
    const wrong = unauthorized("Invalid email or password");
    const { account: proved, isOutdated } = await prove({ email, password }, { use: "password", client, error: wrong });
    if (proved.disabled) throw accountDisabled();
    const passwordHash = isOutdated ? await passwords.hash(password, sharerOf(client)) : undefined;
    const signedIn = await file.write<SignIn | null>((write) => {
      const account = userById.get(write.tx, { id: proved.id });
      // The password may have been changed, or the user deleted, while its hash was being computed.
      if (account === null || account.email !== email) throw wrong;
      if (account.passwordHash !== proved.passwordHash) {
        if (!isOutdated) throw wrong;
        return null;
      }
      const present = passwordHash === undefined ? account : write.update(account.id, { passwordHash });
      return signIns.complete(write, present, client);
    });
    // Another sign-in may have replaced the imported hash meanwhile: once more with the new one, which is not outdated.
    return signedIn === null ? signIn(fields, client) : signIns.answer(signedIn, redirect);
  };

  return {
    confirmPassword,
    signIn,

    async changePassword(caller, client, current, next) {
      const proved = await confirmPassword(caller, client, current);
      const passwordHash = await passwords.hash(next, sharerOf(client));
      const session = await file.write((write) => {
        const account = file.current(write, caller);
        if (account === null || account.passwordHash !== proved.passwordHash) throw invalidToken();
        const changed = write.update(account.id, { passwordHash });
        write.endSessions(account.id, { except: caller.sessionId });
        // A mail that is under way must not set the password back.
        deleteSecretsFor.run(write.tx, { userId: account.id, purpose: "reset-password" });
        return signIns.renew(write, changed, caller, { accessTokens: "end" });
      });
      return signIns.tokens(session);
    },
  };
}
