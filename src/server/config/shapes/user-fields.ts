import { domainToASCII } from "node:url";
import { Type } from "typebox";
import { isLonger, requireJsonSize } from "../../../kernel/fields.ts";
import type { JsonObject } from "../../../kernel/json/json.ts";
import { AnyObject, optional, refine } from "../../../kernel/schema/types.ts";
import {
  AVATAR_URL_MAX_CHARACTERS,
  DISPLAY_NAME_MAX_CHARACTERS,
  EMAIL_LOCAL_MAX_CHARACTERS,
  EMAIL_MAX_CHARACTERS,
  EMAIL_TEXT_MAX_CHARACTERS,
  METADATA_MAX_BYTES,
  PASSWORD_MAX_BYTES,
  ROLE_MAX_CHARACTERS,
} from "../../access/limits.ts";

/** No leading, trailing or double dots. Invisible characters are excluded: two addresses could look alike. */
const EMAIL_LOCAL = /^[^.@"(),:;<>[\]\\\p{Cc}\p{Cf}\p{Cs}\p{Z}]+(?:\.[^.@"(),:;<>[\]\\\p{Cc}\p{Cf}\p{Cs}\p{Z}]+)*$/u;
const EMAIL_DOMAIN_LABEL = /^[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?$/u;
/** The last label is never all digits: that would be an IP address. */
const EMAIL_TOP_LABEL = /^(?=.*[^\p{N}]).{2,}$/u;
/** OHM, KELVIN and ANGSTROM SIGN: their lower case is a letter, of which another address may consist. */
const LETTER_SIGNS = /[\u2126\u212A\u212B]/;
const ASCII = /^[ -~]*$/;
const CONTROL = /\p{Cc}/u;
const OTHER_SPACES = /(?! )\p{Zs}/gu;

/**
 * The one form of an address: trimmed and lower-cased, the local part in NFC, and a domain with other letters than those of ASCII as
 * DNS has it (`xn--…`). null if `text` is not an email address.
 */
export function normalizeEmail(text: string): string | null {
  if (text.length > EMAIL_TEXT_MAX_CHARACTERS || LETTER_SIGNS.test(text)) return null;
  const typed = lowerCasedEmail(text).normalize("NFC");
  // Before DNS drops invisible characters from the domain.
  if (!isEmail(typed)) return null;
  if (ASCII.test(typed)) return typed;
  const at = typed.indexOf("@");
  const email = `${typed.slice(0, at)}@${asciiDomain(typed.slice(at + 1))}`;
  return isEmail(email) ? email : null;
}

/** An address as earlier releases stored it. */
export const lowerCasedEmail = (text: string): string => text.trim().toLowerCase();

/** Empty for what is no domain. What is written in ASCII already is not judged. */
const asciiDomain = (domain: string): string => (ASCII.test(domain) ? domain : domainToASCII(domain));

function isEmail(email: string): boolean {
  if (email.length > EMAIL_MAX_CHARACTERS) return false;
  const at = email.indexOf("@");
  const labels = email.slice(at + 1).split(".");
  const isDomain = labels.length >= 2 && labels.every((label) => EMAIL_DOMAIN_LABEL.test(label));
  const isLocal = at > 0 && at <= EMAIL_LOCAL_MAX_CHARACTERS && EMAIL_LOCAL.test(email.slice(0, at));
  return isLocal && isDomain && EMAIL_TOP_LABEL.test(labels.at(-1) ?? "");
}

/** As it was sent: `emailOf` gives the address. */
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

/** The address in a text that `Email` has accepted. */
export const emailOf = (text: string): string => normalizeEmail(text) ?? "";

/**
 * The form of a password that is hashed (RFC 8265, OpaqueString): NFC, and every space is U+0020. Keyboards write the same
 * characters in several forms. ASCII is as it was.
 */
export const passwordForm = (password: string): string => password.normalize("NFC").replaceAll(OTHER_SPACES, " ");

/** A new plaintext password: the same rules wherever one is set, of its form that is hashed. */
export const newPassword = (minLength: number) =>
  refine(
    refine(
      Type.String({
        minLength: 1,
        description: `At least ${minLength} characters, at most ${PASSWORD_MAX_BYTES} bytes`,
      }),
      (text) => isLonger(passwordForm(text), minLength - 1),
      (name) => ({ code: "too_short", message: `${name} must have at least ${minLength} characters` }),
    ),
    (text) => Buffer.byteLength(passwordForm(text)) <= PASSWORD_MAX_BYTES,
    (name) => ({ code: "too_long", message: `${name} must have at most ${PASSWORD_MAX_BYTES} bytes` }),
  );

const hasNoControls = (text: string): boolean => !CONTROL.test(text);

export const DisplayName = optional(
  refine(Type.String({ maxLength: DISPLAY_NAME_MAX_CHARACTERS }), hasNoControls, (name) => ({
    code: "invalid_value",
    message: `${name} must not contain control characters`,
  })),
);

/** Apps display it, so `javascript:` URLs must not get in. */
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

export const EmailVisibility = Type.Optional(Type.Union([Type.Literal("public"), Type.Literal("private")]));

/** Any text: the app defines its roles. */
export const Role = Type.Optional(
  refine(Type.String({ minLength: 1, maxLength: ROLE_MAX_CHARACTERS }), hasNoControls, (name) => ({
    code: "invalid_value",
    message: `${name} must not contain control characters`,
  })),
);

/** Its size is checked by `requireMetadataSize`, which answers 413. */
export const Metadata = Type.Optional(Type.Unsafe<JsonObject>(AnyObject));

/** The metadata of a user, by its name in the request. Errors: 413 above METADATA_MAX_BYTES of JSON each. */
export function requireMetadataSize(members: {
  metadata?: JsonObject | undefined;
  appMetadata?: JsonObject | undefined;
}): void {
  for (const [name, value] of Object.entries(members)) {
    if (value !== undefined) requireJsonSize(name, value, METADATA_MAX_BYTES);
  }
}
