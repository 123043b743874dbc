import { badField } from "../errors.ts";

/** Encodes the place at which the next page of a list begins, as whole numbers. */
export const encodeCursor = (...place: readonly number[]): string => Buffer.from(place.join(".")).toString("base64url");

type Place = { 1: [number]; 2: [number, number] };

/** Returns the `count` numbers of a cursor. Errors: 400 for a text that no page returned. */
export function decodeCursor<Count extends keyof Place>(cursor: string, count: Count): Place[Count] {
  const place = Buffer.from(cursor, "base64url").toString().split(".").map(Number);
  const isPlace = place.length === count && place.every(Number.isSafeInteger) && encodeCursor(...place) === cursor;
  if (isPlace) return place as Place[Count]; // Of this length, as compared.
  throw badField("cursor", "invalid_value", "cursor must come from a previous page");
}
