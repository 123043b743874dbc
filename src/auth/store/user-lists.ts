import type { AccountEntry, AccountSearchPlace } from "../../access/accounts.ts";
import { SEARCH_LOOKED_AT_MAX } from "../limits.ts";
import type { Sql } from "./sql.ts";

type EntryRow = Omit<AccountEntry, "emailVerified" | "isAnonymous" | "disabled"> & {
  emailVerified: number;
  isAnonymous: number;
  disabled: number;
};

/** Metadata, of which a user may have 32 KB, is left where it is. */
const ENTRY = "SELECT seq, id, email, displayName, role, emailVerified, isAnonymous, disabled, createdAt FROM users";

const toEntry = (row: EntryRow): AccountEntry => ({
  ...row,
  emailVerified: row.emailVerified === 1,
  isAnonymous: row.isAnonymous === 1,
  disabled: row.disabled === 1,
});

export function listUsers(sql: Sql, page: { after: number; limit: number }): AccountEntry[] {
  return sql.query<EntryRow>(`${ENTRY} WHERE seq > ? ORDER BY seq LIMIT ?`).all(page.after, page.limit).map(toEntry);
}

export function entryByEmail(sql: Sql, email: string): AccountEntry | null {
  const row = sql.query<EntryRow>(`${ENTRY} WHERE email = ?`).get(email);
  return row === null ? null : toEntry(row);
}

/** Behind every text that begins with what it is put after. */
const LAST_CHARACTER = "\u{10ffff}";

/** By two indexes, one after the other: each page walks no more of them than it may look at. */
export function searchUsers(
  sql: Sql,
  { text, after, limit }: { text: string; after: AccountSearchPlace | null; limit: number },
): { found: AccountEntry[]; next: AccountSearchPlace | null } {
  const prefix = text.toLowerCase();
  const found: AccountEntry[] = [];
  if (after === null || after.by === "email") {
    const rows = sql
      .query<EntryRow>(`${ENTRY} WHERE email >= ?1 AND email > ?2 AND email < ?3 ORDER BY email LIMIT ?4`)
      .all(prefix, after?.text ?? "", prefix + LAST_CHARACTER, limit + 1);
    found.push(...rows.slice(0, limit).map(toEntry));
    const last = found.at(-1);
    if (rows.length > limit && last !== undefined)
      return { found, next: { by: "email", text: last.email ?? "", seq: last.seq } };
  }
  return searchNames(sql, { prefix, text, after: after?.by === "name" ? after : null, limit, found });
}

function searchNames(
  sql: Sql,
  page: { prefix: string; text: string; after: AccountSearchPlace | null; limit: number; found: AccountEntry[] },
): { found: AccountEntry[]; next: AccountSearchPlace | null } {
  const { prefix, text, after, limit, found } = page;
  const from = after ?? { text, seq: 0 };
  // In two steps, as thousands may have one name: each begins where it has to in the index.
  const rows = sql
    .query<EntryRow>(`${ENTRY} WHERE displayName = ?1 COLLATE NOCASE AND seq > ?2 ORDER BY seq LIMIT ?3`)
    .all(from.text, from.seq, SEARCH_LOOKED_AT_MAX);
  if (rows.length < SEARCH_LOOKED_AT_MAX) {
    const later = sql
      .query<EntryRow>(
        `${ENTRY} WHERE displayName > ?1 COLLATE NOCASE AND displayName < ?2 COLLATE NOCASE
         ORDER BY displayName COLLATE NOCASE, seq LIMIT ?3`,
      )
      .all(from.text, text + LAST_CHARACTER, SEARCH_LOOKED_AT_MAX - rows.length);
    rows.push(...later);
  }
  for (const [index, row] of rows.entries()) {
    // Those were found by their email.
    if (row.email?.startsWith(prefix) === true) continue;
    if (found.length === limit) return { found, next: placeOf(rows[index - 1], from) };
    found.push(toEntry(row));
  }
  return { found, next: rows.length < SEARCH_LOOKED_AT_MAX ? null : placeOf(rows.at(-1), from) };
}

const placeOf = (row: EntryRow | undefined, before: { text: string; seq: number }): AccountSearchPlace => ({
  by: "name",
  text: row?.displayName ?? before.text,
  seq: row?.seq ?? before.seq,
});
