import { expect, test } from "bun:test";
import { heapBytes } from "../../../../../tests/support/heap.ts";
import { LOG_AGE_MAX_MS, LOG_CHANGES_MAX, LOG_MAX_BYTES } from "../limits.ts";
import { NamespaceLog, TableLog } from "./change-log.ts";

const address = (table: string) => ({ namespace: "shared", instanceId: null, table });
const change = (id: string, text = "") => ({ table: "t", id, before: null, after: { id, text } });
let lastSeq = 0;
const at = (place: number) => ({ place, former: null });
/** Numbers between those of this file belong to other files. */
const about = (group: number, at = 0) => {
  lastSeq += 10;
  return { seq: lastSeq, group, at, timestamp: "" };
};

test("[RT26] the changes after a number, one request at a time", () => {
  const [log, table] = [new NamespaceLog(), new TableLog(address("a"), at(lastSeq))];
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
  expect(idsAfter(start + 10)).toEqual(["2"]);
  expect(idsAfter(start + 20)).toEqual(["3"]);
  expect(idsAfter(table.head)).toEqual([]);
  expect(
    [start - 1, start, start + 1, start + 10, table.head, table.head + 1].map((seq) => table.reaches(seq)),
  ).toEqual([...[false, true, false, true, true, false]]);
  expect([start + 10, start + 20].map((seq) => table.before(seq))).toEqual([start, start + 10]);
});

test("[RT27] number, bytes and age bound what a namespace keeps, the oldest of any table first", () => {
  const start = lastSeq;
  const [log, a, b] = [
    new NamespaceLog(),
    new TableLog(address("a"), at(start)),
    new TableLog(address("b"), at(start)),
  ];
  for (let index = 0; index < LOG_CHANGES_MAX + 10; index++) {
    log.append(index % 2 === 0 ? a : b, change(String(index)), about(index));
  }
  log.trim(0);
  expect(log.size).toBe(LOG_CHANGES_MAX);
  expect([a.oldest?.change.id, b.oldest?.change.id]).toEqual(["10", "11"]);
  const [lastOfA, lastOfB] = [start + 90, start + 100];
  expect([lastOfA - 20, lastOfA].map((seq) => a.reaches(seq))).toEqual([false, true]);
  expect([lastOfB - 20, lastOfB].map((seq) => b.reaches(seq))).toEqual([false, true]);

  for (let index = 0; index < 5; index++) log.append(a, change("big", "x".repeat(LOG_MAX_BYTES / 8)), about(0));
  log.trim(0);
  expect(log.size).toBe(3);

  log.append(b, change("young"), about(0, 10));
  log.trim(LOG_AGE_MAX_MS + 5);
  expect([log.size, a.oldest, b.oldest?.change.id]).toEqual([1, undefined, "young"]);
  expect(a.reaches(a.head)).toBe(true);
  expect(a.reaches(a.head - 10)).toBe(false);
});

test("[RT27] a change that is no longer kept takes no memory", () => {
  const [log, table] = [new NamespaceLog(), new TableLog(address("a"), at(0))];
  const before = heapBytes();
  for (let index = 0; index < 300; index++) {
    log.append(table, change(String(index), "x".repeat(1024 * 1024)), about(index));
    log.trim(0);
  }
  expect(table.reaches(table.head - 100)).toBe(true);
  expect(heapBytes() - before).toBeLessThan(2 * LOG_MAX_BYTES);
});
