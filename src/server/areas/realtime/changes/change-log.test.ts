import { expect, test } from "bun:test";
import { heapBytes } from "../../../../../tests/support/heap.ts";
import { LOG_AGE_MAX_MS, LOG_CHANGES_MAX, LOG_MAX_BYTES } from "../limits.ts";
import { NamespaceLog, TableLog } from "./change-log.ts";

const address = (table: string) => ({ namespace: "shared", instanceId: null, table });
const change = (id: string, text = "") => ({ table: "t", id, before: null, after: { id, text } });
const about = (group: number, at = 0) => ({ group, at, timestamp: "" });

test("[RT26] the changes after a number, one request at a time", () => {
  const [log, table] = [new NamespaceLog(), new TableLog(address("a"), 5)];
  const start = table.head;
  for (const [id, group] of [
    ["1", 0],
    ["2", 0],
    ["3", 1],
    ["4", 2],
  ] as const)
    log.append(table, change(id), about(group));
  const idsAfter = (seq: number) => table.groupAfter(seq).map((entry) => entry.change.id);
  expect(idsAfter(start)).toEqual(["1", "2"]);
  expect(idsAfter(start + 1)).toEqual(["2"]);
  expect(idsAfter(start + 2)).toEqual(["3"]);
  expect(idsAfter(table.head)).toEqual([]);
  expect([start - 1, start, table.head, table.head + 1].map((seq) => table.reaches(seq))).toEqual([
    ...[false, true, true, false],
  ]);
});

test("[RT27] number, bytes and age bound what a namespace keeps, the oldest of any table first", () => {
  const [log, a, b] = [new NamespaceLog(), new TableLog(address("a"), 0), new TableLog(address("b"), 0)];
  for (let index = 0; index < LOG_CHANGES_MAX + 10; index++) {
    log.append(index % 2 === 0 ? a : b, change(String(index)), about(index));
  }
  log.trim(0);
  expect(log.size).toBe(LOG_CHANGES_MAX);
  expect([a.oldest?.change.id, b.oldest?.change.id]).toEqual(["10", "11"]);
  expect([a.reaches(4), a.reaches(5), b.reaches(4), b.reaches(5)]).toEqual([false, true, false, true]);

  for (let index = 0; index < 5; index++) log.append(a, change("big", "x".repeat(LOG_MAX_BYTES / 8)), about(0));
  log.trim(0);
  expect(log.size).toBe(3);

  log.append(b, change("young"), about(0, 10));
  log.trim(LOG_AGE_MAX_MS + 5);
  expect([log.size, a.oldest, b.oldest?.change.id]).toEqual([1, undefined, "young"]);
  expect(a.reaches(a.head)).toBe(true);
  expect(a.reaches(a.head - 1)).toBe(false);
});

test("[RT27] a change that is no longer kept takes no memory", () => {
  const [log, table] = [new NamespaceLog(), new TableLog(address("a"), 0)];
  const before = heapBytes();
  for (let index = 0; index < 300; index++) {
    log.append(table, change(String(index), "x".repeat(1024 * 1024)), about(index));
    log.trim(0);
  }
  expect(table.reaches(table.head - 10)).toBe(true);
  expect(heapBytes() - before).toBeLessThan(2 * LOG_MAX_BYTES);
});
