import { Type } from "typebox";
import type { JsonObject } from "../../../kernel/json/json.ts";
import { AnyObject, optional, refine } from "../../../kernel/schema/types.ts";

// Independent of Node and Bun: the types of the client follow from these schemas.

export const PASSWORD_MIN_CHARACTERS = 8;
export const PASSWORD_MAX_BYTES = 1024;
const EMAIL_MAX_CHARACTERS = 254;
/** The maximum length of an address with surrounding white space. */
const EMAIL_TEXT_MAX_CHARACTERS = 4 * EMAIL_MAX_CHARACTERS;
const EMAIL_LOCAL_MAX_CHARACTERS = 64;
export const DISPLAY_NAME_MAX_CHARACTERS = 256;
export const AVATAR_URL_MAX_CHARACTERS = 2048;
const ROLE_MAX_CHARACTERS = 64;

/** Matches the local part: no leading, trailing or double dots. Invisible characters are excluded: two addresses could look alike. */
const EMAIL_LOCAL = /^[^.@"(),:;<>[\]\\\p{Cc}\p{Cf}\p{Cs}\p{Z}]+(?:\.[^.@"(),:;<>[\]\\\p{Cc}\p{Cf}\p{Cs}\p{Z}]+)*$/u;
const EMAIL_DOMAIN_LABEL = /^[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?$/u;
/** Matches the last label, which is never all digits: that would be an IP address. */
const EMAIL_TOP_LABEL = /^(?=.*[^\p{N}]).{2,}$/u;
/** OHM, KELVIN and ANGSTROM SIGN: their lower case is a letter that may be part of another address. */
const LETTER_SIGNS = /[\u2126\u212A\u212B]/;
const ASCII = /^[ -~]*$/;
const CONTROL = /\p{Cc}/u;
const OTHER_SPACES = /(?! )\p{Zs}/gu;

/**
 * Normalizes an address: trimmed and lower-cased, the local part in NFC, and a non-ASCII domain in its DNS form (`xn--…`). null if
 * `text` is not an email address.
 */
export function normalizeEmail(text: string): string | null {
  if (text.length > EMAIL_TEXT_MAX_CHARACTERS || LETTER_SIGNS.test(text)) return null;
  const typed = lowerCasedEmail(text).normalize("NFC");
  // Checked before DNS drops invisible characters from the domain.
  if (!isEmail(typed)) return null;
  if (ASCII.test(typed)) return typed;
  const at = typed.indexOf("@");
  const email = `${typed.slice(0, at)}@${asciiDomain(typed.slice(at + 1))}`;
  return isEmail(email) ? email : null;
}

/** Returns an address as earlier releases stored it. */
export const lowerCasedEmail = (text: string): string => text.trim().toLowerCase();

/** Converts the domain to its DNS form; empty if invalid. A domain in ASCII is returned unchecked. */
function asciiDomain(domain: string): string {
  if (ASCII.test(domain)) return domain;
  return URL.parse(`http://${domain}`)?.hostname ?? "";
}

function isEmail(email: string): boolean {
  if (email.length > EMAIL_MAX_CHARACTERS) return false;
  const at = email.indexOf("@");
  const labels = email.slice(at + 1).split(".");
  const isDomain = labels.length >= 2 && labels.every((label) => EMAIL_DOMAIN_LABEL.test(label));
  const isLocal = at > 0 && at <= EMAIL_LOCAL_MAX_CHARACTERS && EMAIL_LOCAL.test(email.slice(0, at));
  return isLocal && isDomain && EMAIL_TOP_LABEL.test(labels.at(-1) ?? "");
}

/** An address as sent: `emailOf` returns its normalized form. */
export const Email = refine(
  Type.String({
    format: "email",
    minLength: 1,
    maxLength: EMAIL_TEXT_MAX_CHARACTERS,
    description: "Trimmed, lower-cased, and given one form by the server: NFC, the domain as in DNS",
  }),
  (text) => normalizeEmail(text) !== null,
  (name) => ({ code: "invalid_value", message: `${name} must be an email address` }),
);

const PHONE_TEXT_MAX_CHARACTERS = 32;

/** A phone number as sent, with `+` and the country. The server stores it in E.164. */
export const Phone = Type.String({
  minLength: 1,
  maxLength: PHONE_TEXT_MAX_CHARACTERS,
  description: "With + and the country, such as +43 660 12345678",
});

/** Returns the normalized address of a text that `Email` has accepted. */
export const emailOf = (text: string): string => normalizeEmail(text) ?? "";

/**
 * Normalizes a password for hashing (RFC 8265, OpaqueString): NFC, and every space becomes U+0020. Keyboards write the same
 * characters in several forms. ASCII is unchanged.
 */
export const passwordForm = (password: string): string => password.normalize("NFC").replaceAll(OTHER_SPACES, " ");

/** A new plaintext password: the same rules wherever one is set, applied to the form that is hashed. */
export const newPassword = (minLength: number) =>
  refine(
    refine(
      Type.String({
        minLength: 1,
        description: `At least ${minLength} characters, at most ${PASSWORD_MAX_BYTES} bytes`,
      }),
      (text) => hasCharacters(passwordForm(text), minLength),
      (name) => ({ code: "too_short", message: `${name} must have at least ${minLength} characters` }),
    ),
    (text) => new TextEncoder().encode(passwordForm(text)).byteLength <= PASSWORD_MAX_BYTES,
    (name) => ({ code: "too_long", message: `${name} must have at most ${PASSWORD_MAX_BYTES} bytes` }),
  );

/** Counts characters only where the length is inconclusive. */
const hasCharacters = (text: string, count: number): boolean =>
  text.length >= 2 * count || Array.from(text).length >= count;

const hasNoControls = (text: string): boolean => !CONTROL.test(text);

export const DisplayName = optional(
  refine(Type.String({ maxLength: DISPLAY_NAME_MAX_CHARACTERS }), hasNoControls, (name) => ({
    code: "invalid_value",
    message: `${name} must not contain control characters`,
  })),
);

/** A URL that apps display, so `javascript:` is refused. */
export const AvatarUrl = optional(
  refine(
    Type.String({ maxLength: AVATAR_URL_MAX_CHARACTERS, description: "A path or an http(s) URL" }),
    isShowable,
    (name) => ({ code: "invalid_value", message: `${name} must be a path or an http(s) URL` }),
  ),
);

function isShowable(text: string): boolean {
  const protocol = URL.canParse(text, "http://relative") ? new URL(text, "http://relative").protocol : "";
  return protocol === "http:" || protocol === "https:";
}

const LANGUAGE_MAX_CHARACTERS = 35;

/** Returns a language tag (BCP 47) in its one form, as in `de-AT`; null: `text` is none. */
export function languageOf(text: string): string | null {
  if (text.length > LANGUAGE_MAX_CHARACTERS) return null;
  try {
    return Intl.getCanonicalLocales(text)[0] ?? null;
  } catch {
    return null;
  }
}

/** The language in which a user is written to. */
export const Language = optional(
  refine(
    Type.String({ maxLength: LANGUAGE_MAX_CHARACTERS, description: "A language tag (BCP 47), as in de-AT" }),
    (text) => languageOf(text) !== null,
    (name) => ({ code: "invalid_value", message: `${name} must be a language tag such as de or de-AT` }),
  ),
);

export const EmailVisibility = Type.Optional(Type.Union([Type.Literal("public"), Type.Literal("private")]));

/** A role: any text, as the app defines its roles. */
export const Role = Type.Optional(
  refine(Type.String({ minLength: 1, maxLength: ROLE_MAX_CHARACTERS }), hasNoControls, (name) => ({
    code: "invalid_value",
    message: `${name} must not contain control characters`,
  })),
);

/** An object of any members; `requireMetadataSize` bounds their size, with 413. */
export const Metadata = Type.Optional(Type.Unsafe<JsonObject>(AnyObject));
