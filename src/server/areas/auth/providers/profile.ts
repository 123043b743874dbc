import { isJsonObject, type JsonObject, type JsonValue } from "../../../../kernel/json/json.ts";
import { normalizeEmail } from "../../../config/shapes/user-fields.ts";
import { PROVIDER_SUBJECT_MAX_BYTES } from "../limits.ts";

/** A user as a provider describes them. */
export interface Profile {
  subject: string;
  /** Trimmed and lower-cased. */
  email: string | null;
  /** Whether the provider says that the email is the user's. */
  emailVerified: boolean;
  name: string | null;
  picture: string | null;
  /** The provider's tokens, where the config keeps them. */
  tokens?: ProviderTokens;
}

/** Tokens of a user at a provider. */
export interface ProviderTokens {
  accessToken: string;
  /** null: the provider gives none. */
  refreshToken: string | null;
  /** Milliseconds since 1970; null: the provider does not say. */
  expiresAt: number | null;
  /** Parameters of the sign-in that the provider wants for a refresh as well. */
  further?: Readonly<Record<string, string>>;
}

/** A profile as a row of the table of providers reads it: members of any type, checked by `profileOf`. */
export interface RawProfile {
  id: unknown;
  email?: unknown;
  emailVerified?: boolean;
  name?: unknown;
  picture?: unknown;
}

const textOrNull = (value: unknown): string | null =>
  typeof value === "string" && value.trim() !== "" ? value.trim() : null;

/**
 * Checks a profile. Errors: an id that is neither a text of 1 to 255 bytes nor a positive whole number. An empty one would make all
 * users of the provider one user.
 */
export function profileOf({ id, email, emailVerified = false, name, picture }: RawProfile): Profile {
  const subject = typeof id === "number" && Number.isSafeInteger(id) && id > 0 ? String(id) : id;
  const isSubject = typeof subject === "string" && subject.trim() !== "";
  if (!isSubject || Buffer.byteLength(subject) > PROVIDER_SUBJECT_MAX_BYTES) {
    throw new Error("the provider gave an id of the user that is empty, too long or not an id");
  }
  const address = textOrNull(email);
  return {
    subject,
    email: address === null ? null : normalizeEmail(address),
    emailVerified: address !== null && emailVerified,
    name: textOrNull(name),
    picture: textOrNull(picture),
  };
}

/** Returns a member along a path of keys and indexes; undefined where there is none. */
export function memberOf(value: unknown, ...path: readonly (string | number)[]): JsonValue | undefined {
  let found = value;
  for (const key of path) {
    if (typeof key === "number") found = Array.isArray(found) ? found[key] : undefined;
    else found = isJsonObject(found) && Object.hasOwn(found, key) ? found[key] : undefined;
  }
  return found as JsonValue | undefined; // Parsed from JSON.
}

/** Joins the parts of a name that are there. */
export const joinedName = (...parts: readonly unknown[]): string =>
  parts.filter((part) => typeof part === "string" && part !== "").join(" ");

/** Returns the entries of a list that are objects; empty where it is no list. */
export const objectsOf = (value: unknown): JsonObject[] => (Array.isArray(value) ? value.filter(isJsonObject) : []);

/** Whether a flag is set: some providers write it as a text or a number. */
export const isSet = (flag: unknown): boolean => flag === true || flag === "true" || flag === 1 || flag === "1";
