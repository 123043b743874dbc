import type { Fields } from "../kernel/fields.ts";
import { illFormed, isLonger, requireJsonSize } from "../kernel/fields.ts";
import type { JsonObject } from "../kernel/json.ts";
import {
  AVATAR_URL_MAX_CHARACTERS,
  DISPLAY_NAME_MAX_CHARACTERS,
  EMAIL_LOCAL_MAX_CHARACTERS,
  EMAIL_MAX_CHARACTERS,
  METADATA_MAX_BYTES,
  PASSWORD_MAX_BYTES,
  ROLE_MAX_CHARACTERS,
} from "./limits.ts";

/** No leading, trailing or double dots. Invisible characters are excluded: two addresses could look alike. */
const EMAIL_LOCAL = /^[^.@"(),:;<>[\]\\\p{Cc}\p{Cf}\p{Cs}\p{Z}]+(?:\.[^.@"(),:;<>[\]\\\p{Cc}\p{Cf}\p{Cs}\p{Z}]+)*$/u;
const EMAIL_DOMAIN_LABEL = /^[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?$/u;
/** The last label is never all digits: that would be an IP address. */
const EMAIL_TOP_LABEL = /^(?=.*[^\p{N}]).{2,}$/u;
const CONTROL = /\p{Cc}/u;

/** Trimmed and lower-cased; null if `text` is not an email address. */
export function normalizeEmail(text: string): string | null {
  const email = text.trim().toLowerCase();
  if (email.length > EMAIL_MAX_CHARACTERS) return null;
  const at = email.indexOf("@");
  const labels = email.slice(at + 1).split(".");
  const isDomain = labels.length >= 2 && labels.every((label) => EMAIL_DOMAIN_LABEL.test(label));
  const isLocal = at > 0 && at <= EMAIL_LOCAL_MAX_CHARACTERS && EMAIL_LOCAL.test(email.slice(0, at));
  return isLocal && isDomain && EMAIL_TOP_LABEL.test(labels.at(-1) ?? "") ? email : null;
}

/** Required; "" if invalid. */
export function emailField(fields: Fields, name = "email"): string {
  const text = fields.requiredText(name, 4 * EMAIL_MAX_CHARACTERS);
  if (text === "") return "";
  const email = normalizeEmail(text);
  if (email !== null) return email;
  fields.problem(name, "invalid_value", `${name} must be an email address`);
  return "";
}

/** The rules for a new plaintext password, the same wherever a password is set. */
export function checkPassword(fields: Fields, name: string, password: string, minLength: number): void {
  if (!isLonger(password, minLength - 1)) {
    fields.problem(name, "too_short", `${name} must have at least ${minLength} characters`);
  } else if (Buffer.byteLength(password) > PASSWORD_MAX_BYTES) {
    fields.problem(name, "too_long", `${name} must have at most ${PASSWORD_MAX_BYTES} bytes`);
  } else if (!password.isWellFormed()) {
    // UTF-8 replaces every unpaired surrogate by the same bytes: different passwords would have the same hash.
    fields.problem(name, "invalid_value", illFormed(name));
  }
}

/** Required; "" if invalid. */
export function newPasswordField(fields: Fields, minLength: number, name = "password"): string {
  const password = fields.value(name);
  if (password === undefined || password === null || password === "") {
    fields.problem(name, "required", `${name} is required`);
    return "";
  }
  if (typeof password !== "string") {
    fields.problem(name, "invalid_type", `${name} must be a string`);
    return "";
  }
  checkPassword(fields, name, password, minLength);
  return password;
}

export function displayNameField(fields: Fields): string | null | undefined {
  const value = fields.nullableText("displayName", { maxLength: DISPLAY_NAME_MAX_CHARACTERS });
  if (typeof value !== "string" || !CONTROL.test(value)) return value;
  return fields.problem("displayName", "invalid_value", "displayName must not hold control characters");
}

/** A path or an http(s) URL. Apps display it, so `javascript:` URLs must not get in. */
export function avatarUrlField(fields: Fields): string | null | undefined {
  const value = fields.nullableText("avatarUrl", { maxLength: AVATAR_URL_MAX_CHARACTERS });
  if (typeof value !== "string") return value;
  const protocol = URL.canParse(value, "http://relative") ? new URL(value, "http://relative").protocol : "";
  if (protocol === "http:" || protocol === "https:") return value;
  return fields.problem("avatarUrl", "invalid_value", "avatarUrl must be a path or an http(s) address");
}

export function emailVisibilityField(fields: Fields): "public" | "private" | undefined {
  const value = fields.value("emailVisibility");
  if (value === undefined || value === "public" || value === "private") return value;
  return fields.problem("emailVisibility", "invalid_value", 'emailVisibility must be "public" or "private"');
}

/** Any text: the app defines its roles. */
export function roleField(fields: Fields): string | undefined {
  if (fields.value("role") === null) return fields.problem("role", "invalid_type", "role must be a string");
  const value = fields.text("role", { minLength: 1, maxLength: ROLE_MAX_CHARACTERS });
  if (value === undefined || !CONTROL.test(value)) return value;
  return fields.problem("role", "invalid_value", "role must not hold control characters");
}

/** Errors: 413 above METADATA_MAX_BYTES of JSON. */
export function metadataField(fields: Fields, name: "metadata" | "appMetadata"): JsonObject | undefined {
  const value = fields.object(name);
  if (value !== undefined) requireJsonSize(name, value, METADATA_MAX_BYTES);
  return value;
}
