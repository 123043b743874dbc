import { expect, test } from "bun:test";
import { instantOf, parseIsoDateTime } from "./iso-datetime.ts";

test("[CF14] a time without a zone is UTC, whatever the zone of the machine", () => {
  const noon = Date.UTC(2030, 0, 1, 12);
  for (const text of ["2030-01-01T12:00", "2030-01-01T12:00:00", "2030-01-01T12:00:00.000", "2030-01-01T12:00:00Z"]) {
    expect([text, parseIsoDateTime(text)]).toEqual([text, noon]);
  }
  expect(parseIsoDateTime("2030-01-01")).toBe(Date.UTC(2030, 0, 1));
  expect(parseIsoDateTime("2030-01-01T12:00:00+02:00")).toBe(noon - 2 * 3_600_000);
  expect(parseIsoDateTime("2030-01-01T12:00:00-0130")).toBe(noon + 1.5 * 3_600_000);
});

test.each([
  ["2024-05-06T04:00:00.000Z", "2024-05-06T04:00:00.000Z"],
  ["2024-05-06T06:00:00+02:00", "2024-05-06T04:00:00.000Z"],
  ["2024-05-06T04:00Z", "2024-05-06T04:00:00.000Z"],
  ["2024-05-06T09:30:00+0530", "2024-05-06T04:00:00.000Z"],
  ["2024-05-06t04:00:00z", "2024-05-06T04:00:00.000Z"],
  ["2024-05-06 04:00:00-00:00", "2024-05-06T04:00:00.000Z"],
  ["2024-05-06T04:00:00.5Z", "2024-05-06T04:00:00.500Z"],
  ["2024-05-06T04:00:00.1239999999999Z", "2024-05-06T04:00:00.123Z"],
  ["2024-02-29T23:59:59.9999-00:01", "2024-03-01T00:00:59.999Z"],
  ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"],
  ["9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"],
  ["2016-12-31T23:59:60Z", "2017-01-01T00:00:00.000Z"],
  ["2017-01-01T00:59:60.25+01:00", "2017-01-01T00:00:00.250Z"],
])("[TB681] %p is the instant %p", (text, instant) => {
  expect(instantOf(text)).toBe(instant);
});

test.each([
  "2024-05-06",
  "2024-05-06T04:00:00",
  "2024-05-06T04:00",
  "2024-05-06Z",
  "2024-05-06T24:00:00Z",
  "2024-05-06T04:60:00Z",
  "2024-05-06T04:00:61Z",
  "2024-05-06T04:00:60Z",
  "2024-05-06T04:00:00.Z",
  "2024-05-06T04:00:00+24:00",
  "2024-05-06T04:00:00+2",
  "2024-02-30T04:00:00Z",
  "2023-02-29T04:00:00.000Z",
  "2024-13-01T04:00:00Z",
  "0000-01-01T00:00:00+01:00",
  "9999-12-31T23:59:59-01:00",
  "+12024-05-06T04:00:00Z",
  " 2024-05-06T04:00:00Z",
  "2024-05-06T04:00:00Z\n",
  "now",
  "",
])("[TB681] %p is no instant", (text) => {
  expect(instantOf(text)).toBeNull();
});

test("[TB681] offsets of any minute are taken off, so that the order of texts is that of time", () => {
  const instants = Array.from({ length: 2_000 }, (_, index) => {
    const time = new Date(index * 1_234_567_891).toISOString();
    const [hour, minute] = [(index * 7) % 24, (index * 13) % 60].map((part) => String(part).padStart(2, "0"));
    const text = time.replace(index % 3 === 0 ? ".000Z" : "Z", `${index % 2 === 0 ? "+" : "-"}${hour}:${minute}`);
    const instant = instantOf(text);
    expect([text, instant]).toEqual([text, new Date(text).toISOString()]);
    return instant ?? "";
  });
  expect(instants.toSorted()).toEqual(instants.toSorted((one, other) => Date.parse(one) - Date.parse(other)));
});
