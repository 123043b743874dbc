import { AppError, badField, badRequest, conflict, type FieldProblems } from "../../../../kernel/errors.ts";
import { nextTurn } from "../../../../kernel/time/scheduler.ts";
import type {
  Account,
  AccountMail,
  Accounts,
  DeletionReport,
  ImportedAccount,
  NewAccount,
} from "../../../access/accounts.ts";
import type { Actor, Transaction } from "../../../db/index.ts";
import type { Readable } from "../../../db/query.ts";
import { IMPORT_SLICE_USERS } from "../limits.ts";
import type { Posted } from "../mail/mailer.ts";
import { hashProblem } from "../means/passwords.ts";
import { phoneOf } from "../means/phone-numbers.ts";
import { redirectField } from "../means/redirect.ts";
import type { AuthDeps } from "../sessions/deps.ts";
import { issueToken, mailKindOf } from "../sessions/mail-tokens.ts";
import { emailTaken } from "../sessions/sign-in.ts";
import { requireRecentProof } from "../sessions/ways-in.ts";
import { deleteFactors, identityBySubject, insertIdentity } from "../statements/means.ts";
import { deleteSecretsOfUser } from "../statements/secrets.ts";
import {
  entriesAfter,
  entryByEmail,
  insertUser,
  type SecretAccount,
  userByEmail,
  userById,
  userByPhone,
} from "../statements/users.ts";
import { type AccountWrite, type UserChanges, userValues } from "../store/account-file.ts";
import { tellFormerAddress } from "./addresses.ts";
import { changeAsked } from "./asked-changes.ts";
import { removePasskeys } from "./credentials.ts";
import { invite } from "./invitations.ts";
import { countMeans, meansOf, removeMeans, requireUser } from "./means.ts";
import { mergeAccounts } from "./merging.ts";
import type { OAuthProviders } from "./oauth-providers.ts";
import { phoneTaken } from "./phones.ts";
import { createProviderTokens } from "./provider-tokens.ts";
import { searchUsers } from "./user-search.ts";

/** The sharer of administrators' hashes. */
const ADMINISTRATION = "administration";

/** The accounts, for their administration. */
export function createAccounts(deps: AuthDeps, providers: OAuthProviders): Accounts {
  const { file, passwords } = deps;

  return {
    get(id) {
      const account = userById.get(file.sql, { id: id });
      return account === null ? null : withoutHash(account);
    },

    list: (page) => entriesAfter.all(file.sql, page),
    findByEmail: (email) => entryByEmail.get(file.sql, { email: deps.addressOf(email) }),
    search: (page) => searchUsers(file.sql, page),

    async create(user, by) {
      refuseTaken(file.sql, user);
      const { password } = user;
      const hash = typeof password === "string" ? await passwords.hash(password, ADMINISTRATION) : user.passwordHash;
      return file.write((write) => {
        refuseTaken(write.tx, user);
        const { password: _, ...fields } = user;
        return withoutHash(write.insert({ ...fields, passwordHash: hash, id: user.id ?? deps.ids.uuid() }, by));
      });
    },

    async invite(invitation, by) {
      const { account, link } = await invite(deps, invitation, by);
      return { account: withoutHash(account), link };
    },

    async import(users, by) {
      await refuseTakenUsers(file.sql, users);
      const plaintext = users.flatMap((user) => user.password ?? []);
      const hashes = (await passwords.hashAll(plaintext, ADMINISTRATION)).values();
      const now = deps.clock.now();
      const ids: string[] = [];
      const inserts: ((tx: Transaction) => void)[] = [];
      for (const { password, ...user } of users) {
        const passwordHash = typeof password === "string" ? hashes.next().value : user.passwordHash;
        const id = user.id ?? deps.ids.uuid();
        ids.push(id);
        inserts.push(insertUser.encoded(userValues({ ...user, id, passwordHash }, user.createdAt ?? now)));
        for (const { provider, subject, email = null, emailVerified = false } of user.identities ?? []) {
          const identity = { id: deps.ids.uuid(), userId: id, provider, subject, email, emailVerified, createdAt: now };
          inserts.push(insertIdentity.encoded(identity));
        }
        if (ids.length % IMPORT_SLICE_USERS === 0) await nextTurn();
      }
      try {
        await file.write((write) => {
          for (const insert of inserts) insert(write.tx);
          for (const id of ids) write.created(id, by);
        });
      } catch (cause) {
        // Somebody may have been faster while hashes were computed: a unique index says so, and this says who.
        await refuseTakenUsers(file.sql, users);
        throw cause;
      }
      return ids;
    },

    async update(id, { password, keepPasskeys = false, ...changes }, by) {
      requireUser(file.sql, id);
      const phone = typeof changes.phone === "string" ? await phoneOf(changes.phone, "phone") : changes.phone;
      const passwordHash = password === undefined ? undefined : await passwords.hash(password, ADMINISTRATION);
      const { account, inOutbox } = await file.write((write) => {
        const done = changed(deps, write, requireUser(write.tx, id), { ...changes, phone, passwordHash }, by);
        if (passwordHash !== undefined && !keepPasskeys) removePasskeys(write, id);
        return done;
      });
      await inOutbox();
      return withoutHash(account);
    },

    sendMail: (...args) => sendMail(deps, ...args),

    remove: (id, by) => removeAccount(deps, id, by),

    changeAsked: (asked) => changeAsked(deps, asked),

    async revoke(id, by) {
      await file.write((write) => {
        requireUser(write.tx, id);
        write.audit(by, { action: "user.revoke", target: `users/${id}` });
        write.endSessions(id, { except: null, isAudited: true });
        deleteSecretsOfUser.run(write.tx, { userId: id });
      });
    },

    async removeFactors(id, by) {
      await file.write((write) => {
        requireUser(write.tx, id);
        write.audit(by, { action: "factor.delete", target: `users/${id}` });
        deleteFactors.run(write.tx, { userId: id });
      });
    },

    ...meansAndExport(deps, providers),
    passwordHashProblem: hashProblem,
  };
}

/** Returns the part about sessions, ways to sign in, merging and exports. */
const meansAndExport = (
  deps: AuthDeps,
  providers: OAuthProviders,
): Pick<Accounts, "means" | "removeMeans" | "merge" | "requireRecentSignIn" | "noteExport" | "providerToken"> => ({
  providerToken: createProviderTokens(deps, providers),
  means: (id) => meansOf(deps, id),
  removeMeans: (...args) => removeMeans(deps, ...args),
  merge: (asked, by) => mergeAccounts(deps, asked, by),

  requireRecentSignIn({ auth, sessionId, tokenVersion = 0 }) {
    requireRecentProof(deps.file.sql, { userId: auth.id, sessionId, tokenVersion }, deps.config, deps.clock.now());
  },

  noteExport: (id, by) =>
    deps.file.write((write) => {
      requireUser(write.tx, id);
      if (by === null) write.auditByUser(id, "user.export");
      else write.audit(by, { action: "user.export", target: `users/${id}` });
    }),
});

/** See `Accounts.remove`. */
async function removeAccount({ file }: AuthDeps, id: string, by: Actor): Promise<DeletionReport> {
  requireUser(file.sql, id);
  let ended: Omit<DeletionReport, "records"> = { sessions: 0, factors: 0, identities: 0, passkeys: 0 };
  const records = await file.deleting(id, (write) => {
    requireUser(write.tx, id);
    ended = countMeans(write.tx, id);
    write.delete(id, by);
  });
  return { records, ...ended };
}

const MAIL_PURPOSES = { reset: "reset-password", verification: "verify-email" } as const satisfies {
  readonly [Mail in AccountMail]: string;
};

/** Sends a mail to a user that the user could ask for. See `Accounts.sendMail`. */
async function sendMail(
  deps: AuthDeps,
  userId: string,
  mail: AccountMail,
  redirectUrl: string | null,
  by: Actor,
): Promise<void> {
  const purpose = MAIL_PURPOSES[mail];
  const redirect = redirectField(redirectUrl, deps.config);
  const { email } = requireUser(deps.file.sql, userId);
  if (email === null) throw badRequest("This user has no email address");
  await issueToken(deps, { purpose, userId, email, redirect }, (write) => {
    const present = requireUser(write.tx, userId);
    if (present.email !== email) throw conflict("The email address of this user has just been changed");
    if (present.disabled) throw new AppError(409, "The account is disabled");
    if (mail === "verification" && present.emailVerified) throw conflict("The email address is verified already");
    write.audit(by, { action: "user.mail", target: `users/${userId}`, after: { mail: mailKindOf(purpose) } });
  });
}

/** Changes a user, and ends what the change makes void. `inOutbox` waits for the mail about it, after the commit. Errors: 400, 409. */
function changed(
  deps: AuthDeps,
  write: AccountWrite,
  present: SecretAccount,
  changes: UserChanges,
  by: Actor,
): { account: SecretAccount; inOutbox: Posted } {
  const { id } = present;
  const { email = present.email, passwordHash, disabled = present.disabled } = changes;
  const isMoved = email !== present.email;
  const other = isMoved && email !== null ? userByEmail.get(write.tx, { email }) : null;
  if (other !== null) throw emailTaken();
  const owner = typeof changes.phone === "string" ? userByPhone.get(write.tx, { phone: changes.phone }) : null;
  if (owner !== null && owner.id !== id) throw phoneTaken("phone");
  const emailVerified = changes.emailVerified ?? (isMoved ? false : undefined);
  if (email === null && passwordHash !== undefined) throw withoutAddress("password");
  if (email === null && emailVerified === true) throw withoutAddress("emailVerified");
  if (isMoved || passwordHash !== undefined || (disabled && !present.disabled)) {
    write.endSessions(id, { except: null, isAudited: true });
  }
  // Links and codes that were mailed before. Those of a disabled user say so until the user is enabled.
  if (isMoved || passwordHash !== undefined || (present.disabled && !disabled)) {
    deleteSecretsOfUser.run(write.tx, { userId: id });
  }
  const inOutbox = isMoved ? tellFormerAddress(deps, write, present) : async () => {};
  const isAnonymous = email === null ? undefined : false;
  return { account: write.update(id, { ...changes, emailVerified, isAnonymous }, by), inOutbox };
}

const withoutAddress = (field: string): AppError =>
  badField(field, "invalid_value", `${field} needs an email address, and this user has none`);

function withoutHash({ passwordHash: _, ...account }: SecretAccount): Account {
  return account;
}

const singleName = (_index: number, field: string): string => field;
const importName = (index: number, field: string): string => `users.${index}.${field}`;

/** Collects emails, ids and identities that others in the file have, or users that were looked at before. */
interface Taken {
  look(user: ImportedAccount, index: number): void;
  /** Errors: 409 naming every email, id and identity that is taken. */
  refuse(): void;
}

function createTaken(sql: Readable, nameOf: (index: number, field: string) => string): Taken {
  const emails = new Set<string>();
  const ids = new Set<string>();
  const identities = new Set<string>();
  const problems: FieldProblems = {};
  const note = (index: number, field: string, message: string): void => {
    problems[nameOf(index, field)] = { code: "not_unique", message };
  };
  return {
    look(user, index) {
      const { id, email } = user;
      if (emails.has(email) || userByEmail.get(sql, { email }) !== null) {
        note(index, "email", `The email address ${email} already has an account`);
      }
      if (typeof id === "string" && (ids.has(id) || userById.get(sql, { id }) !== null)) {
        note(index, "id", `The id "${id}" is taken`);
      }
      for (const { provider, subject } of user.identities ?? []) {
        const key = JSON.stringify([provider, subject]);
        if (identities.has(key) || identityBySubject.get(sql, { provider, subject }) !== null) {
          note(index, "identities", `The identity "${subject}" of ${provider} belongs to another user`);
        }
        identities.add(key);
      }
      emails.add(email);
      if (typeof id === "string") ids.add(id);
    },
    refuse() {
      const taken = Object.values(problems);
      if (taken.length > 0) throw takenError(taken.length, taken[0]?.message ?? "", problems);
    },
  };
}

/** Refuses users whose id or address is taken. Runs in slices, since a thousand would block the event loop. Errors: 409. */
async function refuseTakenUsers(sql: Readable, users: readonly ImportedAccount[]): Promise<void> {
  const taken = createTaken(sql, importName);
  for (const [index, user] of users.entries()) {
    if (index % IMPORT_SLICE_USERS === IMPORT_SLICE_USERS - 1) await nextTurn();
    taken.look(user, index);
  }
  taken.refuse();
}

/** Refuses a user whose id or address is taken. Errors: 409. */
function refuseTaken(sql: Readable, user: NewAccount): void {
  const taken = createTaken(sql, singleName);
  taken.look(user, 0);
  taken.refuse();
}

const takenError = (count: number, first: string, problems: FieldProblems): AppError =>
  conflict(count === 1 ? first : `${count} fields are taken`, problems);
