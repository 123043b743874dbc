import { AppError, notFound, unauthorized } from "../../../../kernel/errors.ts";
import { projection } from "../../../../kernel/schema/projection.ts";
import { OwnSession, type Tokens } from "../../../config/shapes/sign-in.ts";
import type { OwnUser, ProfileChanges } from "../../../config/shapes/users.ts";
import { SESSIONS_PER_USER_MAX, USER_AGENT_MAX_CHARACTERS } from "../limits.ts";
import { emailNotVerified, type Verification } from "../sessions/verification.ts";
import { deleteSession, newestSessions, sessionById, touchSession } from "../statements/sessions.ts";
import { userById } from "../statements/users.ts";
import { type AuthDeps, type Client, ownUser } from "../sessions/deps.ts";
import { requireRecentProof } from "../sessions/ways-in.ts";
import type { Caller } from "../store/caller.ts";
import { rotate } from "../means/rotation.ts";
import type { OpenSession, SignIns } from "../sessions/sign-in.ts";

const ownSession = projection(OwnSession);

/** A user's own profile and sessions. */
export interface SessionService {
  me(caller: Caller): OwnUser;
  updateMe(caller: Caller, changes: ProfileChanges): Promise<OwnUser>;
  /**
   * The user is deleted with everything that belongs to the account; records and files of the user stay. Errors: 401 `Sign in
   * again` if the last sign-in was too long ago.
   */
  deleteMe(caller: Caller): Promise<void>;
  /** Errors: 401 for a token that is unknown, used before, or of a session that has ended; 403 if the address has to be proved. */
  refresh(refreshToken: string, client: Client): Promise<Tokens>;
  /** Ends the session of a refresh token; an unknown one has no effect. */
  signOut(refreshToken: string): Promise<void>;
  /** Errors: 404 for a session that is not this user's. */
  endSession(userId: string, sessionId: string): Promise<void>;
  /** Newest first. */
  sessions(caller: Caller): OwnSession[];
}

const invalidToken = () => unauthorized("Invalid token");

export function createSessionService(deps: AuthDeps, signIns: SignIns, verification: Verification): SessionService {
  const { file } = deps;
  return {
    me(caller) {
      const account = userById.get(file.sql, { id: caller.userId });
      if (account === null) throw invalidToken();
      return ownUser(account);
    },

    async updateMe(caller, changes) {
      return file.write((write) => {
        if (file.current(write, caller) === null) throw invalidToken();
        return ownUser(write.update(caller.userId, changes));
      });
    },

    async deleteMe(caller) {
      await file.write((write) => {
        const account = requireRecentProof(write.tx, caller, deps.config, write.now);
        write.delete(account.id);
      });
    },

    async refresh(refreshToken, client) {
      const token = deps.tokens.readRefresh(refreshToken);
      if (token === null) throw invalidToken();
      // A failure that ends the session has to be committed, so it is a result and not a throw.
      const result = await file.write<OpenSession | AppError>((write) => {
        const session = sessionById.get(write.tx, { id: token.sessionId });
        const account = session === null ? null : userById.get(write.tx, { id: session.userId });
        if (session === null || account === null || account.disabled) return invalidToken();
        if (session.expiresAt <= write.now) return unauthorized("Token expired");
        // A session of before the config required it.
        if (verification.isMissing(account)) return emailNotVerified();
        const rotation = rotate(session, token.generation, write.now);
        if (rotation.kind === "reused") {
          deleteSession.run(write.tx, { id: session.id });
          write.signOut(session.userId, [session.id], "reused");
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
        const session = sessionById.get(write.tx, { id: token.sessionId });
        if (session === null) return;
        deleteSession.run(write.tx, { id: session.id });
        write.signOut(session.userId, [session.id], "asked");
      });
    },

    async endSession(userId, sessionId) {
      await file.write((write) => {
        if (sessionById.get(write.tx, { id: sessionId })?.userId !== userId)
          throw notFound(`There is no session "${sessionId}"`);
        deleteSession.run(write.tx, { id: sessionId });
        write.signOut(userId, [sessionId], "asked");
      });
    },

    sessions(caller) {
      const now = deps.clock.now();
      return newestSessions
        .all(file.sql, { userId: caller.userId, limit: SESSIONS_PER_USER_MAX })
        .filter((session) => session.expiresAt > now)
        .map((session) => ownSession({ ...session, current: session.id === caller.sessionId }));
    },
  };
}
