import { expect, test } from "bun:test";
import { badRequest } from "../../../../kernel/errors.ts";
import type { TableDoor } from "../../../access/table-door.ts";
import type { TableChannel } from "../channel.ts";
import { type Filters, mergeFilters, parseFilters, type SentFilters } from "./filters.ts";

let compiledCount = 0;
const tables: Pick<TableDoor, "parseFilter"> = {
  parseFilter(_address, { all, any }) {
    compiledCount++;
    if (all === "bad") throw badRequest("filters must be an array");
    return { key: JSON.stringify([all, any]), matches: () => true };
  },
};
const channel: TableChannel = {
  kind: "table",
  name: "realtime:shared:t",
  address: { namespace: "shared", instanceId: null, table: "t" },
  docId: null,
};

function parsed(sent: SentFilters, known: Filters | null = null): Filters {
  const filters = parseFilters(tables, channel, sent, known);
  if ("problem" in filters) throw new Error(filters.problem);
  return filters;
}

test("[RT21] filters equal to those in force are not compiled again", () => {
  const known = parsed({ filters: [["n", "==", 1]] });
  const before = compiledCount;
  expect(parsed({ filters: [["n", "==", 1]], orFilters: null }, known)).toBe(known);
  expect(compiledCount).toBe(before);
  expect(parsed({ filters: [["n", "==", 2]] }, known)).not.toBe(known);
  expect(compiledCount).toBe(before + 1);
});

test("[RT21] an absent member keeps what is in force, null clears it", () => {
  const known = parsed({ filters: [["n", "==", 1]], orFilters: [["n", ">", 0]] });
  expect(mergeFilters({ filters: null }, known)).toEqual({ filters: null, orFilters: [["n", ">", 0]] });
  expect(mergeFilters({ orFilters: [] }, known)).toEqual({ filters: [["n", "==", 1]], orFilters: [] });
  expect(mergeFilters({}, parsed({}))).toEqual({ filters: null, orFilters: null });
});

test("[RT20] what the table refuses, and filters that are too long, are a problem for the client to read", () => {
  expect(parseFilters(tables, channel, { filters: "bad" }, null)).toEqual({ problem: "filters must be an array" });
  const long = parseFilters(tables, channel, { filters: [["n", "==", "x".repeat(65_536)]] }, null);
  expect(long).toEqual({ problem: expect.stringContaining("at most 65536 characters of JSON, got 65") });
});
