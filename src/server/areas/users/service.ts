import { Type } from "typebox";
import { type FieldProblem, type FieldProblems, noProblems, notFound } from "../../../kernel/errors.ts";
import { requireJsonSize, throwProblems } from "../../../kernel/fields.ts";
import type { JsonObject } from "../../../kernel/json/json.ts";
import { projection } from "../../../kernel/schema/projection.ts";
import { nullable } from "../../../kernel/schema/types.ts";
import { parseIsoDateTime } from "../../../kernel/time/iso-datetime.ts";
import { nextTurn } from "../../../kernel/time/scheduler.ts";
import {
  type Account,
  type AccountEntry,
  type Accounts,
  type ImportedAccount,
  requireMetadataSize,
} from "../../access/accounts.ts";
import { CLAIMS_MAX_BYTES, METADATA_MAX_BYTES } from "../../access/limits.ts";
import { emailOf } from "../../config/shapes/user-fields.ts";
import {
  type ImportedUser,
  type NewUser,
  User,
  type UserChanges,
  UserEntry,
  type UserInvitation,
} from "../../config/shapes/users.ts";
import type { Actor } from "../../db/index.ts";
import { encodePlace, type UserListQuery } from "./list-query.ts";

// What an administrator does with users. The arguments have been parsed; rules that a schema cannot express are checked here.

/** Entries of a list that are read in one turn of the event loop. */
const ENTRIES_PER_SLICE = 100;
/** Slices of one page of a search, each of as many users at most. */
const SEARCH_SLICES_MAX = 20;
/** Users that are checked, or read as a whole, in one turn of the event loop: each has up to 36 KB. */
export const USERS_PER_SLICE = 50;

const listEntry = projection(UserEntry);

/** A user as administrators see one, the same wherever one is answered. */
export const adminUser = projection(User);

export const UserDetail = Type.Object(
  { ...User.properties, name: nullable(Type.String({ description: "The displayName" })) },
  { description: "The user" },
);
/** `name` is `displayName` under the name that the detail has always had. */
const detail = (account: Account) => ({ ...adminUser(account), name: account.displayName });

/**
 * All users in order of creation, the one with an email, or those found by the beginning of email or name. `cursor` is null on the
 * last page.
 */
export async function listUsers(
  accounts: Accounts,
  query: UserListQuery,
): Promise<{ users: UserEntry[]; cursor: string | null }> {
  const { limit } = query;
  if (query.kind === "email") {
    const entry = query.email === null ? null : accounts.findByEmail(query.email);
    return { users: entry === null ? [] : [listEntry(entry)], cursor: null };
  }
  if (query.kind === "search") {
    const { found, next } = await searched(accounts, query);
    return { users: found.map(listEntry), cursor: next === null ? null : encodePlace(next) };
  }
  // One more than requested shows whether there is a next page.
  const found = await entriesOf(accounts, { after: query.after, limit: limit + 1 });
  const page = found.slice(0, limit);
  const last = page.at(-1);
  const hasMore = found.length > limit && last !== undefined;
  return { users: page.map(listEntry), cursor: hasMore ? String(last.seq) : null };
}

/** Reads entries in slices: a thousand users take longer than others may wait. */
async function entriesOf(accounts: Accounts, page: { after: number; limit: number }): Promise<AccountEntry[]> {
  const found: AccountEntry[] = [];
  let { after } = page;
  for (;;) {
    const limit = Math.min(ENTRIES_PER_SLICE, page.limit - found.length);
    const slice = accounts.list({ after, limit });
    found.push(...slice);
    after = slice.at(-1)?.seq ?? after;
    if (slice.length < limit || found.length === page.limit) return found;
    await nextTurn();
  }
}

/** Searches in slices. Rows that were looked at and not found make the page shorter. */
async function searched(accounts: Accounts, page: Parameters<Accounts["search"]>[0]) {
  const found: AccountEntry[] = [];
  let next = page.after;
  for (let count = 0; count < SEARCH_SLICES_MAX; count++) {
    const limit = Math.min(ENTRIES_PER_SLICE, page.limit - found.length);
    const slice = accounts.search({ text: page.text, after: next, limit });
    found.push(...slice.found);
    next = slice.next;
    if (next === null || found.length === page.limit) break;
    await nextTurn();
  }
  return { found, next };
}

/** Returns the user with details. Errors: 404. */
export const getUser = (accounts: Accounts, id: string): ReturnType<typeof detail> =>
  detail(requireAccount(accounts, id));

/** Returns the account. Errors: 404. */
export function requireAccount(accounts: Accounts, id: string): Account {
  const account = accounts.get(id);
  if (account === null) throw notFound(`There is no user "${id}"`);
  return account;
}

/** Errors: 409; 413 for metadata over 16 KB. */
export async function createUser(accounts: Accounts, user: NewUser, by: Actor): Promise<User> {
  requireMetadataSize(user);
  return adminUser(await accounts.create({ ...user, email: emailOf(user.email) }, by));
}

/** Errors: see `Accounts.invite`; 413 for metadata over 16 KB, or data over 4 KB. */
export async function inviteUser(
  accounts: Accounts,
  invitation: UserInvitation,
  by: Actor,
): Promise<{ user: User; link: string }> {
  requireMetadataSize(invitation);
  if (invitation.data !== undefined) requireJsonSize("data", invitation.data, CLAIMS_MAX_BYTES);
  const { account, link } = await accounts.invite({ ...invitation, email: emailOf(invitation.email) }, by);
  return { user: adminUser(account), link };
}

/** Errors: see `Accounts.update`; 413 for metadata over 16 KB. */
export async function updateUser(accounts: Accounts, id: string, changes: UserChanges, by: Actor): Promise<User> {
  requireMetadataSize(changes);
  const { email, ...others } = changes;
  return adminUser(
    await accounts.update(id, { ...others, ...(email === undefined ? {} : { email: emailOf(email) }) }, by),
  );
}

/** Replaces all claims. Errors: 404, 413 over 4 KB. */
export async function setClaims(accounts: Accounts, id: string, claims: JsonObject, by: Actor): Promise<void> {
  requireJsonSize("claims", claims, CLAIMS_MAX_BYTES);
  await accounts.update(id, { customClaims: claims }, by);
}

/**
 * Imports all users or none. They are checked in slices, as a thousand users may have 10 MiB. `providers`: the names of `auth.oauth`.
 * Errors: 400 and 409, naming every `users.N.field` at fault.
 */
export async function importUsers(
  accounts: Accounts,
  { users, providers }: { users: readonly ImportedUser[]; providers: ReadonlySet<string> },
  by: Actor,
): Promise<{ results: { id: string; success: true }[] }> {
  const problems = noProblems();
  const imported: ImportedAccount[] = [];
  for (const [index, user] of users.entries()) {
    if (index % USERS_PER_SLICE === USERS_PER_SLICE - 1) await nextTurn();
    for (const [field, problem] of Object.entries(problemsOf(user, accounts, providers))) {
      problems[`users.${index}.${field}`] = problem;
    }
    imported.push(accountOf(user));
  }
  throwProblems(problems);
  const ids = await accounts.import(imported, by);
  return { results: ids.map((id) => ({ id, success: true })) };
}

const accountOf = ({ verified, createdAt, identities, ...user }: ImportedUser): ImportedAccount => ({
  ...user,
  email: emailOf(user.email),
  emailVerified: verified,
  createdAt: typeof createdAt === "string" ? parseIsoDateTime(createdAt) : undefined,
  identities: identities?.map((identity) => ({
    ...identity,
    email: typeof identity.email === "string" ? emailOf(identity.email) : null,
  })),
});

function problemsOf(user: ImportedUser, accounts: Accounts, providers: ReadonlySet<string>): FieldProblems {
  const problems = noProblems();
  const password = passwordProblem(user);
  if (password !== null) problems["password"] = password;
  const isHash = typeof user.passwordHash === "string" && password === null;
  const hash = isHash ? accounts.passwordHashProblem(user.passwordHash ?? "") : null;
  if (hash !== null) problems["passwordHash"] = { code: "invalid_value", message: `passwordHash ${hash}` };
  const identities = identitiesProblem(user, providers);
  if (identities !== null) problems["identities"] = identities;
  for (const name of ["metadata", "appMetadata"] as const) {
    const value = user[name];
    if (value === undefined || Buffer.byteLength(JSON.stringify(value)) <= METADATA_MAX_BYTES) continue;
    // The size of one user's metadata is one problem among others, and not the size of the request: 400 instead of 413.
    problems[name] = { code: "too_large", message: `${name} must be at most ${METADATA_MAX_BYTES} bytes of JSON` };
  }
  return problems;
}

/** An account without either signs in by link, code or provider, or sets a password by mail. */
function passwordProblem({ password, passwordHash }: ImportedUser): FieldProblem | null {
  if (typeof password !== "string" || typeof passwordHash !== "string") return null;
  return { code: "invalid_value", message: "password and passwordHash exclude each other" };
}

/** Identities of a provider that the config does not name could sign nobody in. */
function identitiesProblem({ identities }: ImportedUser, providers: ReadonlySet<string>): FieldProblem | null {
  const unknown = identities?.find(({ provider }) => !providers.has(provider));
  if (unknown === undefined) return null;
  return {
    code: "invalid_value",
    message: `identities names "${unknown.provider}", which is no provider of auth.oauth`,
  };
}
