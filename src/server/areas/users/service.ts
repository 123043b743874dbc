import { notFound } from "../../../kernel/errors.ts";
import { requireJsonSize } from "../../../kernel/fields.ts";
import type { JsonObject } from "../../../kernel/json/json.ts";
import { nextTurn } from "../../../kernel/time/next-turn.ts";
import { requireMetadataSize } from "../../config/shapes/user-fields.ts";
import type {
  AccountChanges,
  AccountEntry,
  Accounts,
  Invitation,
  NewAccount,
  RemovableMeans,
  SignInMeans,
} from "../../access/accounts.ts";
import { CLAIMS_MAX_BYTES } from "../../access/limits.ts";
import type { Actor } from "../../db/index.ts";
import { type ImportedUser, readImport } from "./import.ts";
import { ENTRIES_PER_SLICE, SEARCH_SLICES_MAX } from "./limits.ts";
import { encodePlace, type UserListQuery } from "./list-query.ts";
import { adminUser, createdUser, detail, listEntry } from "./types.ts";

/** What an administrator does with users. */
export interface UsersService {
  /**
   * All in order of creation, the one with an email, or those found by the beginning of email or name. `cursor` is null on the
   * last page.
   */
  list(query: UserListQuery): Promise<{ users: ReturnType<typeof listEntry>[]; cursor: string | null }>;
  /** Errors: 404. */
  get(id: string): ReturnType<typeof detail>;
  /** Errors: 409. */
  create(user: NewAccount, by: Actor): Promise<ReturnType<typeof createdUser>>;
  /** Errors: see `Accounts.invite`; 413 for metadata over 16 KB. */
  invite(invitation: Invitation, by: Actor): Promise<ReturnType<typeof createdUser>>;
  /** Errors: 404. */
  update(id: string, changes: AccountChanges, by: Actor): Promise<ReturnType<typeof adminUser>>;
  /** Errors: 404. */
  remove(id: string, by: Actor): Promise<void>;
  /** Replaces all claims. Errors: 404, 413 over 4 KB. */
  setClaims(id: string, claims: JsonObject, by: Actor): Promise<void>;
  /** Errors: 404. */
  revoke(id: string, by: Actor): Promise<void>;
  /** Errors: 404. */
  removeFactors(id: string, by: Actor): Promise<void>;
  /** Errors: see `Accounts.sendMail`. */
  sendMail: Accounts["sendMail"];
  /** Errors: 404. */
  means(id: string): SignInMeans;
  /** Errors: 404. */
  removeMeans(id: string, removed: { kind: RemovableMeans; id: string }, by: Actor): Promise<void>;
  /** All or none. Errors: 400, 409 naming `users.N.field`. */
  import(users: readonly ImportedUser[], by: Actor): Promise<{ results: { id: string; success: true }[] }>;
}

/** In slices: a thousand users take longer than others may wait. */
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

/** The same of a search. Rows that were looked at and not found make the page shorter. */
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

export function createUsersService({
  accounts,
  providers,
}: {
  accounts: Accounts;
  /** The names of `auth.oauth`. */
  providers: ReadonlySet<string>;
}): UsersService {
  return {
    async list(query) {
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
    },
    get(id) {
      const account = accounts.get(id);
      if (account === null) throw notFound(`There is no user "${id}"`);
      return detail(account);
    },
    async create(user, by) {
      return createdUser(await accounts.create(user, by));
    },
    async invite(invitation, by) {
      requireMetadataSize({ metadata: invitation.metadata });
      return createdUser(await accounts.invite(invitation, by));
    },
    async update(id, changes, by) {
      return adminUser(await accounts.update(id, changes, by));
    },
    remove: (id, by) => accounts.remove(id, by),
    async setClaims(id, claims, by) {
      requireJsonSize("claims", claims, CLAIMS_MAX_BYTES);
      await accounts.update(id, { customClaims: claims }, by);
    },
    revoke: (id, by) => accounts.revoke(id, by),
    removeFactors: (id, by) => accounts.removeFactors(id, by),
    sendMail: accounts.sendMail,
    means: accounts.means,
    removeMeans: accounts.removeMeans,
    async import(users, by) {
      const ids = await accounts.import(
        await readImport(users, { hashProblem: accounts.passwordHashProblem, providers }),
        by,
      );
      return { results: ids.map((id) => ({ id, success: true })) };
    },
  };
}
