import { expect, test } from "bun:test";
import { parseIsoDateTime } from "./iso-datetime.ts";

test("[CF14] a time without a zone is UTC, whatever the zone of the machine", () => {
  const noon = Date.UTC(2030, 0, 1, 12);
  for (const text of ["2030-01-01T12:00", "2030-01-01T12:00:00", "2030-01-01T12:00:00.000", "2030-01-01T12:00:00Z"]) {
    expect([text, parseIsoDateTime(text)]).toEqual([text, noon]);
  }
  expect(parseIsoDateTime("2030-01-01")).toBe(Date.UTC(2030, 0, 1));
  expect(parseIsoDateTime("2030-01-01T12:00:00+02:00")).toBe(noon - 2 * 3_600_000);
  expect(parseIsoDateTime("2030-01-01T12:00:00-0130")).toBe(noon + 1.5 * 3_600_000);
});
