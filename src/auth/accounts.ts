import type { Account, Accounts, NewAccount } from "../access/accounts.ts";
import type { Readable } from "../db/query.ts";
import { type AppError, conflict, type FieldProblems } from "../kernel/errors.ts";
import { nextTurn } from "../kernel/time/next-turn.ts";
import type { Invitations } from "./invitations/service.ts";
import { IMPORT_SLICE_USERS } from "./limits.ts";
import { createMeans, requireUser } from "./means.ts";
import { userValues } from "./new-user.ts";
import { deleteFactors } from "./statements/factors.ts";
import { entriesAfter, entryByEmail } from "./statements/user-lists.ts";
import { insertUser, type SecretAccount, userByEmail, userById } from "./statements/users.ts";
import type { AuthDeps } from "./types.ts";
import { searchUsers } from "./user-search.ts";

/** The sharer of administrators' hashes. */
const ADMINISTRATION = "administration";

/** The accounts, for their administration. */
export function createAccounts(deps: AuthDeps & Pick<Invitations, "invite">): Accounts {
  const { file, passwords } = deps;

  return {
    get(id) {
      const account = userById.get(file.sql, { id: id });
      return account === null ? null : withoutHash(account);
    },

    list: (page) => entriesAfter.all(file.sql, page),
    findByEmail: (email) => entryByEmail.get(file.sql, { email }),
    search: (page) => searchUsers(file.sql, page),

    async create(user, by) {
      refuseTaken(file.sql, [user], singleName);
      const hash =
        user.password === undefined ? user.passwordHash : await passwords.hash(user.password, ADMINISTRATION);
      return file.write((write) => {
        refuseTaken(write.tx, [user], singleName);
        const { password: _, ...fields } = user;
        return withoutHash(write.insert({ ...fields, passwordHash: hash, id: user.id ?? deps.ids.uuid() }, by));
      });
    },

    invite: async (invitation, by) => withoutHash(await deps.invite(invitation, by)),

    async import(users, by) {
      refuseTaken(file.sql, users, importName);
      const plaintext = users.flatMap((user) => user.password ?? []);
      const hashes = (await passwords.hashAll(plaintext, ADMINISTRATION)).values();
      const now = deps.clock.now();
      const ids: string[] = [];
      const inserts: ReturnType<typeof insertUser.encoded>[] = [];
      for (const { password, ...user } of users) {
        const passwordHash = password === undefined ? user.passwordHash : hashes.next().value;
        const id = user.id ?? deps.ids.uuid();
        ids.push(id);
        inserts.push(insertUser.encoded(userValues({ ...user, id, passwordHash }, now)));
        if (ids.length % IMPORT_SLICE_USERS === 0) await nextTurn();
      }
      await file.write((write) => {
        refuseTaken(write.tx, users, importName);
        for (const insert of inserts) insert(write.tx);
        for (const id of ids) write.created(id, by);
      });
      return ids;
    },

    async update(id, changes, by) {
      return file.write((write) => {
        requireUser(write.tx, id);
        if (changes.disabled === true) write.endSessions(id, { except: null, isAudited: true });
        return withoutHash(write.update(id, changes, by));
      });
    },

    async remove(id, by) {
      await file.write((write) => {
        requireUser(write.tx, id);
        write.delete(id, by);
      });
    },

    async revoke(id, by) {
      await file.write((write) => {
        requireUser(write.tx, id);
        write.audit(by, { action: "user.revoke", target: `users/${id}` });
        write.endSessions(id, { except: null, isAudited: true });
      });
    },

    async removeFactors(id, by) {
      await file.write((write) => {
        requireUser(write.tx, id);
        write.audit(by, { action: "factor.delete", target: `users/${id}` });
        deleteFactors.run(write.tx, { userId: id });
      });
    },

    ...createMeans(deps),
    passwordHashProblem: passwords.hashProblem,
  };
}

function withoutHash({ passwordHash: _, ...account }: SecretAccount): Account {
  return account;
}

const singleName = (_index: number, field: string): string => field;
const importName = (index: number, field: string): string => `users.${index}.${field}`;

/** Errors: 409 naming every email and id that is taken, in the file or by an earlier one of `users`. */
function refuseTaken(
  sql: Readable,
  users: readonly NewAccount[],
  nameOf: (index: number, field: string) => string,
): void {
  const emails = new Set<string>();
  const ids = new Set<string>();
  const problems: FieldProblems = {};
  users.forEach((user, index) => {
    if (emails.has(user.email) || userByEmail.get(sql, { email: user.email }) !== null) {
      const message = `The email address ${user.email} already has an account`;
      problems[nameOf(index, "email")] = { code: "not_unique", message };
    }
    if (user.id !== undefined && (ids.has(user.id) || userById.get(sql, { id: user.id }) !== null)) {
      problems[nameOf(index, "id")] = { code: "not_unique", message: `The id "${user.id}" is taken` };
    }
    emails.add(user.email);
    if (user.id !== undefined) ids.add(user.id);
  });
  const taken = Object.values(problems);
  if (taken.length > 0) throw takenError(taken.length, taken[0]?.message ?? "", problems);
}

const takenError = (count: number, first: string, problems: FieldProblems): AppError =>
  conflict(count === 1 ? first : `${count} fields are taken`, problems);
