import { Type } from "typebox";
import type { FieldProblems } from "../../../../kernel/errors.ts";
import { createParser } from "../../../../kernel/schema/parser.ts";
import type { ProfileChanges } from "../../../access/account-records.ts";
import { AvatarUrl, DisplayName } from "../../../config/shapes/user-fields.ts";
import type { TableRecord } from "../../../config/types.ts";

// The fields of the table of users that an update changes in the account.

const PROFILE = ["displayName", "avatarUrl"] as const;

const profile = createParser(Type.Object({ displayName: DisplayName, avatarUrl: AvatarUrl }));

/** Returns what the account would refuse in changes of a record; null: nothing. */
export function profileProblems(changes: TableRecord): FieldProblems | null {
  const named = PROFILE.filter((name) => Object.hasOwn(changes, name));
  if (named.length === 0) return null;
  return profile.problemsOf(Object.fromEntries(named.map((name) => [name, changes[name] ?? null])));
}

/** Returns what an update changes in the account; null: nothing. */
export function profileChanges(stored: TableRecord, next: TableRecord): ProfileChanges | null {
  const changed = PROFILE.filter((name) => next[name] !== stored[name]);
  if (changed.length === 0) return null;
  // Fields of text.
  return Object.fromEntries(changed.map((name) => [name, next[name] ?? null])) as ProfileChanges;
}
