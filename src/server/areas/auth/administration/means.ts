import { notFound } from "../../../../kernel/errors.ts";
import { isoTime } from "../../../../kernel/time/iso-datetime.ts";
import type { Accounts, RemovableMeans, SignInMeans } from "../../../access/accounts.ts";
import type { Readable } from "../../../db/query.ts";
import type { AccountWrite } from "../account-file.ts";
import { SESSIONS_SHOWN_MAX } from "../limits.ts";
import { factorsOfUser } from "../statements/factors.ts";
import { deleteIdentity, identitiesOfUser } from "../statements/identities.ts";
import { deletePasskey, passkeyById, passkeysOfUser } from "../statements/passkeys.ts";
import { deleteSession, newestSessions, sessionById } from "../statements/sessions.ts";
import { type SecretAccount, userById } from "../statements/users.ts";
import type { AuthDeps } from "../types.ts";

/** What users sign in with, for administrators. */
export function createMeans({ file, clock }: AuthDeps): Pick<Accounts, "means" | "removeMeans"> {
  return {
    means(id) {
      requireUser(file.sql, id);
      return {
        sessions: sessionsOf(file.sql, id, clock.now()),
        factors: factorsOfUser
          .all(file.sql, { userId: id })
          .map((factor) => ({ ...named(factor, ["id", "type", "verified"]), createdAt: isoTime(factor.createdAt) })),
        identities: identitiesOfUser.all(file.sql, { userId: id }).map((identity) => ({
          ...named(identity, ["id", "provider", "email"]),
          createdAt: isoTime(identity.createdAt),
          lastSignInAt: isoTime(identity.lastSignInAt),
        })),
        passkeys: passkeysOfUser.all(file.sql, { userId: id }).map((passkey) => ({
          ...named(passkey, ["id", "name", "deviceType"]),
          createdAt: isoTime(passkey.createdAt),
          lastUsedAt: passkey.lastUsedAt === null ? null : isoTime(passkey.lastUsedAt),
        })),
      };
    },
    async removeMeans(id, removed, by) {
      await file.write((write) => {
        requireUser(write.tx, id);
        if (!REMOVALS[removed.kind](write, id, removed.id))
          throw notFound(`There is no ${removed.kind} "${removed.id}"`);
        const action = removed.kind === "session" ? "user.revoke" : "factor.delete";
        write.audit(by, { action, target: `users/${id}`, after: { type: removed.kind } });
      });
    },
  };
}

/** Members by name, so that no secret gets into an answer by accident. */
const named = <Row extends object, Name extends keyof Row>(row: Row, names: readonly Name[]): Pick<Row, Name> =>
  // It has exactly these members.
  Object.fromEntries(names.map((name) => [name, row[name]])) as Pick<Row, Name>;

const sessionsOf = (sql: Readable, userId: string, now: number): SignInMeans["sessions"] =>
  newestSessions
    .all(sql, { userId, limit: SESSIONS_SHOWN_MAX })
    .filter((session) => session.expiresAt > now)
    .map((session) => ({
      ...named(session, ["id", "ip", "userAgent"]),
      createdAt: isoTime(session.createdAt),
      lastUsedAt: isoTime(session.lastUsedAt),
      expiresAt: isoTime(session.expiresAt),
    }));

/** Each gives whether there was one of this user. */
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

/** Errors: 404. */
export function requireUser(sql: Readable, id: string): SecretAccount {
  const account = userById.get(sql, { id });
  if (account === null) throw notFound(`There is no user "${id}"`);
  return account;
}
