import { AppError, notFound, unauthorized } from "../../../../kernel/errors.ts";
import { projection } from "../../../../kernel/schema/projection.ts";
import { OwnSession, type Tokens } from "../../../config/shapes/sign-in.ts";
import type { OwnUser, ProfileChanges } from "../../../config/shapes/users.ts";
import { SESSIONS_PER_USER_MAX } from "../limits.ts";
import { rotate } from "../means/tokens.ts";
import { type AuthDeps, type Client, ownUser } from "../sessions/deps.ts";
import { invalidToken, type OpenSession, refreshTtlMsOf, renewedTokens, userAgentOf } from "../sessions/sign-in.ts";
import { emailNotVerified, isUnproved } from "../sessions/verification.ts";
import { requireRecentProof } from "../sessions/ways-in.ts";
import { deleteSession, newestSessions, sessionById, touchSession } from "../statements/sessions.ts";
import { userById } from "../statements/users.ts";
import { type Caller, currentAccount } from "../store/account-file.ts";

// A user's own profile and sessions.

const ownSession = projection(OwnSession);

export function me({ file }: AuthDeps, caller: Caller): OwnUser {
  const account = userById.get(file.sql, { id: caller.userId });
  if (account === null) throw invalidToken();
  return ownUser(account);
}

export const updateMe = ({ file }: AuthDeps, caller: Caller, changes: ProfileChanges): Promise<OwnUser> =>
  file.write((write) => {
    if (currentAccount(write, caller) === null) throw invalidToken();
    return ownUser(write.update(caller.userId, changes));
  });

/**
 * Deletes the user with everything that belongs to the account; records and files of the user stay, but for what refers to the table
 * of users. Errors: 401 `Sign in again` if the last sign-in was too long ago; 409 where such a reference restricts it.
 */
export async function deleteMe({ file, config, clock }: AuthDeps, caller: Caller): Promise<void> {
  requireRecentProof(file.sql, caller, config, clock.now());
  await file.deleting(caller.userId, (write) =>
    write.delete(requireRecentProof(write.tx, caller, config, write.now).id),
  );
}

/**
 * Exchanges a refresh token for new tokens. Errors: 401 for a token that is unknown, used before, or of a session that has ended; 403
 * if the address has to be proved.
 */
export async function refresh(deps: AuthDeps, refreshToken: string, client: Client): Promise<Tokens> {
  const token = deps.tokens.readRefresh(refreshToken);
  if (token === null) throw invalidToken();
  // A failure that ends the session has to be committed, so it is a result and not a throw.
  const result = await deps.file.write<OpenSession | AppError>((write) => {
    const session = sessionById.get(write.tx, { id: token.sessionId });
    const account = session === null ? null : userById.get(write.tx, { id: session.userId });
    if (session === null || account === null || account.disabled) return invalidToken();
    if (session.expiresAt <= write.now) return unauthorized("Token expired");
    // A session of before the config required it.
    if (isUnproved(deps.config, account)) return emailNotVerified();
    const rotation = rotate(session, token.generation, write.now);
    if (rotation.kind === "reused") {
      deleteSession.run(write.tx, { id: session.id });
      write.signOut(session.userId, [session.id], "reused");
      return invalidToken();
    }
    const { generation, rotations } = rotation;
    const expiresAt = write.now + refreshTtlMsOf(deps.config);
    const used = { lastUsedAt: write.now, expiresAt, ip: client.address, userAgent: userAgentOf(client) };
    touchSession.run(write.tx, { id: session.id, ...used, generation, rotations });
    write.extended(session.id, expiresAt);
    return { account, sessionId: session.id, generation, tokenVersion: session.tokenVersion };
  });
  if (result instanceof AppError) throw result;
  return renewedTokens(deps, result);
}

/** Ends the session of a refresh token; an unknown one has no effect. */
export async function signOut({ tokens, file }: AuthDeps, refreshToken: string): Promise<void> {
  const token = tokens.readRefresh(refreshToken);
  if (token === null) return;
  await file.write((write) => {
    const session = sessionById.get(write.tx, { id: token.sessionId });
    if (session === null) return;
    deleteSession.run(write.tx, { id: session.id });
    write.signOut(session.userId, [session.id], "asked");
  });
}

/** Errors: 404 for a session that is not this user's. */
export async function endSession({ file }: AuthDeps, userId: string, sessionId: string): Promise<void> {
  await file.write((write) => {
    if (sessionById.get(write.tx, { id: sessionId })?.userId !== userId) {
      throw notFound(`There is no session "${sessionId}"`);
    }
    deleteSession.run(write.tx, { id: sessionId });
    write.signOut(userId, [sessionId], "asked");
  });
}

/** Lists live sessions, newest first. */
export function sessionsOf({ file, clock }: AuthDeps, { userId, sessionId }: Caller): OwnSession[] {
  const now = clock.now();
  return newestSessions
    .all(file.sql, { userId, limit: SESSIONS_PER_USER_MAX })
    .filter(({ expiresAt }) => expiresAt > now)
    .map((session) => ownSession({ ...session, current: session.id === sessionId }));
}
