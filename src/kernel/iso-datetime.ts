const ISO_8601 =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?:T(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?(?:Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?)?$/;

/** Whether a text is an ISO 8601 date, or date and time, of a day that exists. */
export function isIsoDateTime(value: string): boolean {
  return ISO_8601.test(value) && !Number.isNaN(Date.parse(value));
}
