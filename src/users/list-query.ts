import { normalizeEmail } from "../access/account-fields.ts";
import type { AccountSearchPlace } from "../access/accounts.ts";
import { type Query, wholeNumber } from "../http/query.ts";
import { badField } from "../kernel/errors.ts";
import { isLonger } from "../kernel/fields.ts";
import { LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX, SEARCH_TEXT_MAX_CHARACTERS } from "./limits.ts";

/** Which users a list is of, and from where on. */
export type UserListQuery = { limit: number } & (
  | { kind: "all"; after: number }
  | { kind: "email"; email: string | null }
  | { kind: "search"; text: string; after: AccountSearchPlace | null }
);

const START = "0";
const PLACE = /^\d{1,15}$/;

/** Errors: 400 naming the parameter. */
export function parseListQuery(query: Query): UserListQuery {
  const limit = Math.min(wholeNumber(query, "limit", { min: 1, fallback: LIST_LIMIT_DEFAULT }), LIST_LIMIT_MAX);
  const cursor = query.get("cursor") ?? START;
  const email = query.get("email");
  const text = query.get("q");
  if (email !== null && text !== null) throw badField("q", "invalid_value", "email and q cannot be used together");
  if (email !== null) {
    if (cursor !== START) throw badCursor();
    return { limit, kind: "email", email: normalizeEmail(email) };
  }
  if (text === null) {
    if (!PLACE.test(cursor)) throw badCursor();
    return { limit, kind: "all", after: Number(cursor) };
  }
  const wanted = text.trim();
  if (wanted === "") throw badField("q", "required", "q must be the beginning of an email address or a name");
  if (isLonger(wanted, SEARCH_TEXT_MAX_CHARACTERS)) {
    throw badField("q", "too_long", `q must have at most ${SEARCH_TEXT_MAX_CHARACTERS} characters`);
  }
  return { limit, kind: "search", text: wanted, after: cursor === START ? null : decodePlace(cursor) };
}

const badCursor = () => badField("cursor", "invalid_value", "cursor is not one of this list");

export const encodePlace = ({ by, text, seq }: AccountSearchPlace): string =>
  Buffer.from(JSON.stringify([by, text, seq])).toString("base64url");

function decodePlace(cursor: string): AccountSearchPlace {
  try {
    const place: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    if (!Array.isArray(place) || place.length !== 3) throw badCursor();
    const [by, text, seq]: unknown[] = place;
    if ((by !== "email" && by !== "name") || typeof text !== "string" || !Number.isSafeInteger(seq)) throw badCursor();
    return { by, text, seq: Number(seq) };
  } catch {
    throw badCursor();
  }
}
