import { notFound } from "../../../../kernel/errors.ts";
import { projection } from "../../../../kernel/schema/projection.ts";
import type { RemovableMeans } from "../../../access/accounts.ts";
import { SignInMeans } from "../../../config/shapes/sign-in.ts";
import type { Actor } from "../../../db/index.ts";
import type { Readable } from "../../../db/query.ts";
import { SESSIONS_SHOWN_MAX } from "../limits.ts";
import type { AuthDeps } from "../sessions/deps.ts";
import { requireOtherWayIn, requireRecentProof } from "../sessions/ways-in.ts";
import {
  deleteIdentity,
  deletePasskey,
  factorsOfUser,
  identitiesOfUser,
  passkeyById,
  passkeysOfUser,
} from "../statements/means.ts";
import { countSessions, deleteSession, newestSessions, sessionById } from "../statements/sessions.ts";
import { type SecretAccount, userById } from "../statements/users.ts";
import type { AccountWrite, Caller } from "../store/account-file.ts";

const { sessions, factors, identities, passkeys } = SignInMeans.properties;
const sessionView = projection(sessions.items);
const factorView = projection(factors.items);
const identityView = projection(identities.items);
const passkeyView = projection(passkeys.items);

/** Lists what a user signs in with, for administrators. Errors: 404. */
export function meansOf({ file, clock }: AuthDeps, userId: string): SignInMeans {
  requireUser(file.sql, userId);
  const now = clock.now();
  const newest = newestSessions.all(file.sql, { userId, limit: SESSIONS_SHOWN_MAX });
  return {
    sessions: newest.filter(({ expiresAt }) => expiresAt > now).map(sessionView),
    factors: factorsOfUser.all(file.sql, { userId }).map(factorView),
    identities: identitiesOfUser.all(file.sql, { userId }).map(identityView),
    passkeys: passkeysOfUser.all(file.sql, { userId }).map(passkeyView),
  };
}

/** Counts a user's sessions and means to sign in. */
export const countMeans = (sql: Readable, userId: string) => ({
  sessions: countSessions.get(sql, { userId })?.count ?? 0,
  factors: factorsOfUser.all(sql, { userId }).length,
  identities: identitiesOfUser.all(sql, { userId }).length,
  passkeys: passkeysOfUser.all(sql, { userId }).length,
});

/** See `Accounts.removeMeans`. */
export async function removeMeans(
  { file }: AuthDeps,
  userId: string,
  removed: { kind: RemovableMeans; id: string },
  by: Actor,
): Promise<void> {
  await file.write((write) => {
    requireUser(write.tx, userId);
    if (!REMOVALS[removed.kind](write, userId, removed.id)) {
      throw notFound(`There is no ${removed.kind} "${removed.id}"`);
    }
    const action = removed.kind === "session" ? "user.revoke" : "factor.delete";
    write.audit(by, { action, target: `users/${userId}`, after: { type: removed.kind } });
  });
}

/** Each returns whether there was one of this user. */
const REMOVALS: Readonly<Record<RemovableMeans, (write: AccountWrite, userId: string, id: string) => boolean>> = {
  session(write, userId, id) {
    if (sessionById.get(write.tx, { id })?.userId !== userId) return false;
    deleteSession.run(write.tx, { id });
    write.ended([id]);
    return true;
  },
  identity(write, userId, id) {
    if (!identitiesOfUser.all(write.tx, { userId }).some((identity) => identity.id === id)) return false;
    deleteIdentity.run(write.tx, { id });
    return true;
  },
  passkey(write, userId, id) {
    if (passkeyById.get(write.tx, { id })?.userId !== userId) return false;
    deletePasskey.run(write.tx, { id });
    return true;
  },
};

/** Returns the account. Errors: 404. */
export function requireUser(sql: Readable, id: string): SecretAccount {
  const account = userById.get(sql, { id });
  if (account === null) throw notFound(`There is no user "${id}"`);
  return account;
}

/** Lists the caller's identities. */
export const identitiesOf = ({ file }: AuthDeps, { userId }: Caller) =>
  identitiesOfUser.all(file.sql, { userId }).map(identityView);

/** Removes one of the caller's own. Errors: 404, 401 `Sign in again`, 409 for the last way of signing in. */
export async function removeOwnMeans(
  { file, config }: AuthDeps,
  caller: Caller,
  { kind, id }: { kind: "identity" | "passkey"; id: string },
): Promise<void> {
  const { userId } = caller;
  await file.write((write) => {
    const account = requireRecentProof(write.tx, caller, config, write.now);
    if (!REMOVALS[kind](write, userId, id)) throw notFound(`There is no ${kind} "${id}"`);
    requireOtherWayIn(write.tx, account, config, id);
    write.auditByUser(userId, "factor.delete", { type: kind });
  });
}
