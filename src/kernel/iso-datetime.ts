const ISO_8601 =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?:T(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?(?:Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?)?$/;

/** Whether a text is an ISO 8601 date, or date and time, of a day that exists. */
export function isIsoDateTime(value: string): boolean {
  if (!ISO_8601.test(value)) return false;
  // The engine's own parser takes the 30th of February for the 1st of March.
  const [year = 0, month = 0, day = 0] = value.slice(0, 10).split("-").map(Number);
  return day <= new Date(Date.UTC(year, month, 0)).getUTCDate();
}

/**
 * The moment that an ISO 8601 text (see `isIsoDateTime`) names. Without a zone it is UTC: the engine's own parser would take
 * the zone of the machine, so that one config meant two moments.
 */
export function parseIsoDateTime(value: string): number {
  const hasTime = value.length > "2026-01-01".length;
  const hasZone = /(?:Z|[+-]\d\d:?\d\d)$/.test(value.slice("2026-01-01".length));
  return Date.parse(hasTime && !hasZone ? `${value}Z` : value);
}
