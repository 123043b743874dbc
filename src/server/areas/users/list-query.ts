import { type Static, Type } from "typebox";
import { badField } from "../../../kernel/errors.ts";
import { isLonger } from "../../../kernel/fields.ts";
import type { AccountSearchPlace } from "../../access/accounts.ts";
import { normalizeEmail } from "../../config/shapes/user-fields.ts";

/** Users of a page: by default, and at most. */
const LIST_LIMIT_DEFAULT = 20;
const LIST_LIMIT_MAX = 1_000;
/** Characters of a search text: an email address has no more. */
const SEARCH_TEXT_MAX_CHARACTERS = 254;
const START = "0";
const PLACE = /^\d{1,15}$/;

export const LIST_QUERY = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, default: LIST_LIMIT_DEFAULT, description: `More counts as ${LIST_LIMIT_MAX}` }),
  ),
  cursor: Type.Optional(Type.String({ description: `\`${START}\` is the start` })),
  email: Type.Optional(Type.String({ description: "Only the user with this address, in either case" })),
  q: Type.Optional(
    Type.String({ description: "Only users whose email or display name begins so; A-Z match in either case" }),
  ),
};

/** Filter of a list of users, and its start. */
export type UserListQuery = { limit: number } & (
  | { kind: "all"; after: number }
  | { kind: "email"; email: string | null }
  | { kind: "search"; text: string; after: AccountSearchPlace | null }
);

type ListParameters = { [Name in keyof typeof LIST_QUERY]?: Static<(typeof LIST_QUERY)[Name]> };

/** Errors: 400 naming the parameter. */
export function readListQuery({ limit: asked, cursor = START, email, q }: ListParameters): UserListQuery {
  const limit = Math.min(asked ?? LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX);
  if (email !== undefined && q !== undefined) {
    throw badField("q", "invalid_value", "email and q cannot be used together");
  }
  if (email !== undefined) {
    if (cursor !== START) throw badCursor();
    return { limit, kind: "email", email: normalizeEmail(email) === null ? null : email };
  }
  if (q === undefined) {
    if (!PLACE.test(cursor)) throw badCursor();
    return { limit, kind: "all", after: Number(cursor) };
  }
  const text = q.trim();
  if (text === "") throw badField("q", "required", "q must be the beginning of an email address or a name");
  if (isLonger(text, SEARCH_TEXT_MAX_CHARACTERS)) {
    throw badField("q", "too_long", `q must have at most ${SEARCH_TEXT_MAX_CHARACTERS} characters`);
  }
  return { limit, kind: "search", text, after: cursor === START ? null : decodePlace(cursor) };
}

const badCursor = () => badField("cursor", "invalid_value", "cursor does not belong to this list");

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
