import { CLAIMS_MAX_BYTES } from "../access/account-fields.ts";
import type { Accounts } from "../access/accounts.ts";
import { badField, notFound } from "../kernel/errors.ts";
import { requireJsonSize } from "../kernel/fields.ts";
import type { JsonObject } from "../kernel/json.ts";
import { parseImport, parseNewUser, parseUserChanges } from "./parse.ts";
import { createdUser, detail, listEntry, type UserListEntry, updatedUser } from "./types.ts";

/** What an administrator does with users. Spec: Administration endpoints; decisions 7. */
export interface UsersService {
  /** In order of creation. `cursor` is opaque, `"0"` the start, null on the last page. Errors: 400 for a malformed one. */
  list(page: { limit: number; cursor: string }): { users: UserListEntry[]; cursor: string | null };
  /** Errors: 404. */
  get(id: string): ReturnType<typeof detail>;
  /** Errors: 400, 409. */
  create(body: JsonObject): Promise<ReturnType<typeof createdUser>>;
  /** Errors: 400, 404, 413. */
  update(id: string, body: JsonObject): Promise<ReturnType<typeof updatedUser>>;
  /** Errors: 404. */
  remove(id: string): Promise<void>;
  /** Replaces all claims. Errors: 404, 413 over 4 KB. */
  setClaims(id: string, claims: JsonObject): Promise<void>;
  /** Errors: 404. */
  revoke(id: string): Promise<void>;
  /** Errors: 404. */
  removeFactors(id: string): Promise<void>;
  /** All or none. Errors: 400, 409 naming `users.N.field`. */
  import(body: JsonObject): Promise<{ results: { id: string; success: true }[] }>;
}

const CURSOR = /^\d{1,15}$/;

export function createUsersService(deps: { accounts: Accounts; passwordMinLength: number }): UsersService {
  const { accounts, passwordMinLength } = deps;

  return {
    list({ limit, cursor }) {
      if (!CURSOR.test(cursor)) throw badField("cursor", "invalid_value", "cursor is not one of this list");
      // One more than asked for says whether there is a next page.
      const found = accounts.list({ after: Number(cursor), limit: limit + 1 });
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
    async create(body) {
      return createdUser(await accounts.create(parseNewUser(body, { passwordMinLength })));
    },
    async update(id, body) {
      return updatedUser(await accounts.update(id, parseUserChanges(body)));
    },
    remove: (id) => accounts.remove(id),
    async setClaims(id, claims) {
      requireJsonSize("claims", claims, CLAIMS_MAX_BYTES);
      await accounts.update(id, { customClaims: claims });
    },
    revoke: (id) => accounts.revoke(id),
    removeFactors: (id) => accounts.removeFactors(id),
    async import(body) {
      const { passwordHashProblem } = accounts;
      const ids = await accounts.import(parseImport(body, { passwordMinLength, passwordHashProblem }));
      return { results: ids.map((id) => ({ id, success: true })) };
    },
  };
}
