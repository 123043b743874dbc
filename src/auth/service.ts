import { pause } from "../kernel/clock.ts";
import { AppError, badRequest, notFound, unauthorized } from "../kernel/errors.ts";
import type { JsonObject } from "../kernel/json.ts";
import { accountDisabled, type UserChanges } from "./account-file.ts";
import type { Guess } from "./guesses.ts";
import { REFUSAL_MS, SESSIONS_PER_USER_MAX, USER_AGENT_MAX_CHARACTERS } from "./limits.ts";
import { rotate } from "./rotation.ts";
import { emailTaken, type OpenSession, type SignIns } from "./sign-in.ts";
import { deleteSecretsFor } from "./statements/secrets.ts";
import { deleteSession, newestSessions, sessionById, touchSession } from "./statements/sessions.ts";
import { type SecretAccount, userByEmail, userById } from "./statements/users.ts";
import {
  type AuthDeps,
  type Caller,
  type Client,
  type OwnUser,
  ownUser,
  type SignInAnswer,
  sharerOf,
  type TokenAnswer,
} from "./types.ts";

export interface SignUp {
  email: string;
  password: string;
  displayName?: string | null | undefined;
  metadata?: JsonObject | undefined;
}

export interface SessionView {
  id: string;
  createdAt: string;
  lastUsedAt: string;
  ip: string | null;
  userAgent: string | null;
  current: boolean;
}

/** Accounts, passwords and sessions. Endpoints: decisions 6. */
export interface AuthService {
  /** Errors: 409 for a known email. */
  signUp(fields: SignUp, client: Client): Promise<TokenAnswer>;
  /** Errors: 401 `Invalid email or password`, 403 `Account is disabled`, 429. */
  signIn(fields: { email: string; password: string }, client: Client): Promise<SignInAnswer>;
  signInAnonymously(client: Client): Promise<TokenAnswer>;
  /** Errors: 401 for a token that is unknown, used before, or of a session that has ended. */
  refresh(refreshToken: string, client: Client): Promise<TokenAnswer>;
  /** Ends the session of a refresh token; nothing happens for one that is unknown. */
  signOut(refreshToken: string): Promise<void>;
  /** Errors: 404 for a session that is not this user's. */
  endSession(userId: string, sessionId: string): Promise<void>;
  me(caller: Caller): OwnUser;
  updateMe(caller: Caller, changes: UserChanges): Promise<OwnUser>;
  /** Errors: 401 for a wrong current password. Every other session ends. */
  changePassword(caller: Caller, client: Client, current: string, next: string): Promise<TokenAnswer>;
  /** Errors: 400 for a user who is not anonymous, 409 for a known email. The id stays. */
  linkEmail(caller: Caller, email: string, password: string): Promise<TokenAnswer>;
  sessions(caller: Caller): SessionView[];
  /** The account of a user whose password this is. Errors: 401, 429. */
  confirmPassword(caller: Caller, client: Client, password: string): Promise<SecretAccount>;
}

const iso = (millis: number): string => new Date(millis).toISOString();
const invalidToken = () => unauthorized("Invalid token");

export function createAuthService(deps: AuthDeps, signIns: SignIns): AuthService {
  const { file, passwords } = deps;
  return {
    ...createPasswordSignIn(deps, signIns),
    ...createSessionService(deps, signIns),

    me(caller) {
      const account = userById.get(file.sql, { id: caller.userId });
      if (account === null) throw invalidToken();
      return ownUser(account);
    },

    async updateMe(caller, changes) {
      return file.write((write) => {
        if (file.current(write, caller.userId, caller.sessionId) === null) throw invalidToken();
        return ownUser(write.update(caller.userId, changes));
      });
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
        // A guest who gets an account in the middle of a game goes on with it.
        return signIns.renew(write, linked, caller, { accessTokens: "stay" });
      });
      return signIns.tokens(session);
    },
  };
}

function createPasswordSignIn(
  deps: AuthDeps,
  signIns: SignIns,
): Pick<AuthService, "signUp" | "signIn" | "signInAnonymously" | "changePassword" | "confirmPassword"> {
  const { file, passwords, guesses, clock } = deps;

  /** The account that `password` opens. The time is the same whether there is one or not, and whatever hash it has. */
  const prove = async (email: string, password: string, client: Client, error: AppError): Promise<SecretAccount> => {
    let refusedAt = 0;
    const guess = async (): Promise<Guess<SecretAccount>> => {
      const account = userByEmail.get(file.sql, { email: email });
      const { isRight, beganAt } = await passwords.verify(password, account?.passwordHash ?? null, sharerOf(client));
      refusedAt = beganAt + REFUSAL_MS;
      return isRight && account !== null ? { isRight, value: account } : { isRight: false, error };
    };
    return guesses.attempt(signIns.guessKeys(email, client), guess).catch(async (cause: unknown) => {
      // Judged already, so that it holds up no other guess.
      if (cause === error) await pause(clock, Math.min(REFUSAL_MS, Math.max(0, refusedAt - clock.now())));
      throw cause;
    });
  };

  const confirmPassword: AuthService["confirmPassword"] = async (caller, client, password) => {
    const email = userById.get(file.sql, { id: caller.userId })?.email ?? null;
    const wrong = unauthorized("Invalid password");
    if (email === null) throw wrong;
    return prove(email, password, client, wrong);
  };

  return {
    confirmPassword,

    async signUp({ email, password, displayName, metadata }, client) {
      if (userByEmail.get(file.sql, { email: email }) !== null) throw emailTaken();
      const passwordHash = await passwords.hash(password, sharerOf(client));
      const session = await file.write((write) => {
        if (userByEmail.get(write.tx, { email: email }) !== null) throw emailTaken();
        const account = write.insert({ id: deps.ids.uuid(), email, passwordHash, displayName, metadata });
        return signIns.open(write, account, client);
      });
      return signIns.tokens(session);
    },

    async signIn({ email, password }, client) {
      const wrong = unauthorized("Invalid email or password");
      const proved = await prove(email, password, client, wrong);
      if (proved.disabled) throw accountDisabled();
      const isOutdated = proved.passwordHash !== null && passwords.isOutdated(proved.passwordHash);
      const passwordHash = isOutdated ? await passwords.hash(password, sharerOf(client)) : undefined;
      const signIn = await file.write((write) => {
        const account = userById.get(write.tx, { id: proved.id });
        // The password may have been changed, or the user deleted, while its hash was being computed.
        if (account === null || account.passwordHash !== proved.passwordHash || account.email !== email) throw wrong;
        const present = passwordHash === undefined ? account : write.update(account.id, { passwordHash });
        return signIns.complete(write, present, client);
      });
      return signIns.answer(signIn);
    },

    async signInAnonymously(client) {
      const session = await file.write((write) => {
        const account = write.insert({ id: deps.ids.uuid(), email: null, isAnonymous: true });
        return signIns.open(write, account, client);
      });
      return signIns.tokens(session);
    },

    async changePassword(caller, client, current, next) {
      const proved = await confirmPassword(caller, client, current);
      const passwordHash = await passwords.hash(next, sharerOf(client));
      const session = await file.write((write) => {
        const account = file.current(write, caller.userId, caller.sessionId);
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

function createSessionService(
  deps: AuthDeps,
  signIns: SignIns,
): Pick<AuthService, "refresh" | "signOut" | "endSession" | "sessions"> {
  const { file } = deps;
  return {
    async refresh(refreshToken, client) {
      const token = deps.tokens.readRefresh(refreshToken);
      if (token === null) throw invalidToken();
      // A failure that ends the session has to be committed, so it is a result and not a throw.
      const result = await file.write<OpenSession | AppError>((write) => {
        const session = sessionById.get(write.tx, { id: token.sessionId });
        const account = session === null ? null : userById.get(write.tx, { id: session.userId });
        if (session === null || account === null || account.disabled) return invalidToken();
        if (session.expiresAt <= write.now) return unauthorized("Token expired");
        const rotation = rotate(session, token.generation, write.now);
        if (rotation.kind === "reused") {
          deleteSession.run(write.tx, { id: session.id });
          write.ended([session.id]);
          return invalidToken();
        }
        const expiresAt = write.now + signIns.refreshTtlMs;
        const userAgent = client.userAgent?.slice(0, USER_AGENT_MAX_CHARACTERS) ?? null;
        touchSession.run(write.tx, {
          id: session.id,
          lastUsedAt: write.now,
          expiresAt,
          ip: client.address,
          userAgent,
          generation: rotation.generation,
          rotations: rotation.rotations,
        });
        write.extended(session.id, expiresAt);
        const { tokenVersion } = session;
        return { account, sessionId: session.id, generation: rotation.generation, tokenVersion };
      });
      if (result instanceof AppError) throw result;
      return signIns.tokens(result);
    },

    async signOut(refreshToken) {
      const token = deps.tokens.readRefresh(refreshToken);
      if (token === null) return;
      await file.write((write) => {
        if (deleteSession.run(write.tx, { id: token.sessionId }) > 0) write.ended([token.sessionId]);
      });
    },

    async endSession(userId, sessionId) {
      await file.write((write) => {
        if (sessionById.get(write.tx, { id: sessionId })?.userId !== userId)
          throw notFound(`There is no session "${sessionId}"`);
        deleteSession.run(write.tx, { id: sessionId });
        write.ended([sessionId]);
      });
    },

    sessions(caller) {
      const now = deps.clock.now();
      return newestSessions
        .all(file.sql, { userId: caller.userId, limit: SESSIONS_PER_USER_MAX })
        .filter((session) => session.expiresAt > now)
        .map((session) => ({
          id: session.id,
          createdAt: iso(session.createdAt),
          lastUsedAt: iso(session.lastUsedAt),
          ip: session.ip,
          userAgent: session.userAgent,
          current: session.id === caller.sessionId,
        }));
    },
  };
}
