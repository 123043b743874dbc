import type { AccountEntry, AccountSearchPlace } from "../../../access/accounts.ts";
import { normalizeEmail } from "../../../config/shapes/user-fields.ts";
import type { Readable } from "../../../db/query.ts";
import { SEARCH_LOOKED_AT_MAX } from "../limits.ts";
import { entriesByEmail, entriesByName, entriesOfName } from "../statements/users.ts";

interface SearchPage {
  text: string;
  after: AccountSearchPlace | null;
  limit: number;
}

interface SearchResult {
  found: AccountEntry[];
  next: AccountSearchPlace | null;
}

/** Sorts after every text that begins with what it is appended to. */
const LAST_CHARACTER = "\u{10ffff}";

/** First by email, then by name: each page reads a bounded part of the two indexes. */
export function searchUsers(from: Readable, { text, after, limit }: SearchPage): SearchResult {
  // Of a whole address its one form; of a beginning what it can be the beginning of.
  const prefix = normalizeEmail(text) ?? text.toLowerCase().normalize("NFC");
  const found: AccountEntry[] = [];
  if (after === null || after.by === "email") {
    const end = prefix + LAST_CHARACTER;
    const rows = entriesByEmail.all(from, { from: prefix, after: after?.text ?? "", end, limit: limit + 1 });
    found.push(...rows.slice(0, limit));
    const last = found.at(-1);
    if (rows.length > limit && last !== undefined) {
      return { found, next: { by: "email", text: last.email ?? "", seq: last.seq } };
    }
  }
  return searchNames(from, { prefix, text, after: after?.by === "name" ? after : null, limit, found });
}

function searchNames(from: Readable, page: SearchPage & { prefix: string; found: AccountEntry[] }): SearchResult {
  const { prefix, text, after, limit, found } = page;
  const place = after ?? { text, seq: 0 };
  // In two steps, as thousands may have one name: each starts at its place in the index.
  const rows = entriesOfName.all(from, { name: place.text, after: place.seq, limit: SEARCH_LOOKED_AT_MAX });
  if (rows.length < SEARCH_LOOKED_AT_MAX) {
    const remaining = SEARCH_LOOKED_AT_MAX - rows.length;
    rows.push(...entriesByName.all(from, { after: place.text, end: text + LAST_CHARACTER, limit: remaining }));
  }
  for (const [index, row] of rows.entries()) {
    // Found by its email already.
    if (row.email?.startsWith(prefix) === true) continue;
    if (found.length === limit) return { found, next: placeOf(rows[index - 1], place) };
    found.push(row);
  }
  return { found, next: rows.length < SEARCH_LOOKED_AT_MAX ? null : placeOf(rows.at(-1), place) };
}

function placeOf(row: AccountEntry | undefined, before: { text: string; seq: number }): AccountSearchPlace {
  return { by: "name", text: row?.displayName ?? before.text, seq: row?.seq ?? before.seq };
}
