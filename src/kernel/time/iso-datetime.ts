import { badField } from "../errors.ts";

const ISO_8601 =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?:T(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?(?:Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?)?$/;

/** Reports whether a text is an ISO 8601 date, or date and time, of a day that exists. */
export function isIsoDateTime(value: string): boolean {
  if (!ISO_8601.test(value)) return false;
  // `Date.parse` accepts 30 February as 1 March.
  const [year = 0, month = 0, day = 0] = value.slice(0, 10).split("-").map(Number);
  return day <= new Date(Date.UTC(year, month, 0)).getUTCDate();
}

/** Reports whether a text is the date of a day that exists, such as 2024-05-06. */
export const isIsoDate = (value: string): boolean => value.length === "2024-05-06".length && isIsoDateTime(value);

/**
 * Parses an ISO 8601 text (see `isIsoDateTime`) into milliseconds since 1970. A text without a zone is UTC: `Date.parse` would use
 * the machine's zone, so that the same config would mean different times on different machines.
 */
export function parseIsoDateTime(value: string): number {
  const hasTime = value.length > "2026-01-01".length;
  const hasZone = /(?:Z|[+-]\d\d:?\d\d)$/.test(value.slice("2026-01-01".length));
  return Date.parse(hasTime && !hasZone ? `${value}Z` : value);
}

/** Returns the milliseconds since 1970 of a parameter that has them, or ISO 8601. Errors: 400 that names it. */
export function momentOf(name: string, value: string): number {
  if (/^\d{1,15}$/.test(value)) return Number(value);
  if (isIsoDateTime(value)) return parseIsoDateTime(value);
  const message = `${name} must be milliseconds since 1970 or an ISO 8601 time, got "${value}"`;
  throw badField(name, "invalid_value", message);
}

/** A span of time in milliseconds since 1970; null: no end. `to` is exclusive. */
export interface TimeSpan {
  from: number | null;
  to: number | null;
}

/** Parses `from` and `to`. Errors: 400 naming the parameter. */
export function parseSpan({ from, to }: { from?: string | undefined; to?: string | undefined }): TimeSpan {
  const span = {
    from: from === undefined ? null : momentOf("from", from),
    to: to === undefined ? null : momentOf("to", to),
  };
  if (span.from === null || span.to === null || span.from < span.to) return span;
  throw badField("from", "invalid_value", "from must be before to");
}

/** Formats a time in UTC with milliseconds, like all times in answers. */
export const isoTime = (millis: number): string => new Date(millis).toISOString();

const INSTANT = /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d)(?::(\d\d)(?:\.(\d+))?)?([Zz]|[+-]\d\d:?\d\d)$/;
/** The form in which instants are stored, on a day that every month has. */
const STORED = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z$/;

/**
 * Returns an instant as UTC with milliseconds, such as 2024-05-06T04:00:00.000Z, so that the order of texts is that of time. Takes
 * RFC 3339 with any number of digits, of which those beyond milliseconds are cut off; also without seconds, and an offset without a
 * colon. null: the text has no offset, no such time exists, or its year as UTC has not four digits.
 */
export function instantOf(text: string): string | null {
  if (STORED.test(text)) return text;
  const [, date = "", minute = "", second = "00", digits = "", offset = ""] = INSTANT.exec(text) ?? [];
  const isLeap = second === "60";
  const zone = offset.toUpperCase().replace(/^([+-]\d\d)(\d\d)$/, "$1:$2");
  const whole = `${date}T${minute}:${isLeap ? "59" : second}.${digits.slice(0, 3).padEnd(3, "0")}${zone}`;
  if (!isIsoDateTime(whole)) return null;
  const utc = isoTime(Date.parse(whole) + (isLeap ? 1_000 : 0));
  // A leap second is the last of a day as UTC, and counts as the first of the next one.
  if (utc.length !== whole.length - zone.length + 1 || (isLeap && !utc.includes("T00:00:00"))) return null;
  return utc;
}
