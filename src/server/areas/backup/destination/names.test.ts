import { expect, test } from "bun:test";
import { backupName, failedName, isBackupName, isRemains, nextName, outdated } from "./names.ts";

test("[BK21] the name of a scheduled backup is its time, and names sort by time", () => {
  const name = backupName(new Date("2026-01-31T02:00:00.123Z"));
  expect(name).toBe("platform-2026-01-31T02-00-00Z.tar.zst");
  expect([isBackupName(name), isRemains(`${name}.partial`)]).toEqual([true, true]);
});

test("[BK21] only the oldest backups are outdated, and no files with similar names", () => {
  const [one, two, three] = [1, 2, 3].map((day) => backupName(new Date(Date.UTC(2026, 0, day))));
  const others = ["notes.txt", "platform-backup.tar.zst", `${one}.partial`, `${one}.old`, `my-${one}`, "platform-"];
  const names = [three, ...others, one, two].map(String);
  const made = String(three);
  expect(outdated(names, { made, keep: 1 })).toEqual([one, two].map(String));
  expect(outdated(names, { made, keep: 2 })).toEqual([String(one)]);
  expect(outdated(names, { made, keep: 3 })).toEqual([]);
  expect(outdated(others, { made, keep: 1 })).toEqual([]);
  expect(others.filter(isRemains)).toEqual([`${one}.partial`]);
});

const at = (time: string) => backupName(new Date(time));

test("[BK304] a backup is named after all that are there, also where one of the same second was deleted", () => {
  const now = Date.parse("2026-01-31T02:30:00.123Z");
  const [zero, one, two, three] = [0, 1, 2, 3].map((second) => at(`2026-01-31T02:30:0${second}Z`));
  expect(nextName([], now)).toBe(String(zero));
  expect(nextName([at("2026-01-31T02:29:59Z")], now)).toBe(String(zero));
  expect(nextName([one, two].map(String), now)).toBe(String(three));
  expect(nextName([String(zero), failedName(String(two))], now)).toBe(String(three));
});

test("[BK21] backups of a clock that was ahead count as the oldest, and do not name the next one", () => {
  const ahead = ["2031-01-01T00:00:00Z", "2031-01-02T00:00:00Z"].map(at);
  const made = nextName(ahead, Date.parse("2026-01-31T02:30:00Z"));
  expect(made).toBe(at("2026-01-31T02:30:00Z"));
  const names = [at("2026-01-30T02:30:00Z"), made, ...ahead];
  expect(outdated(names, { made, keep: 2 })).toEqual(ahead);
  expect(outdated(names, { made, keep: 3 })).toEqual(ahead.slice(0, 1));
  expect(nextName([made, at("2026-01-31T02:30:01Z"), ...ahead], Date.parse("2026-01-31T02:30:01Z"))).toBe(
    at("2026-01-31T02:30:02Z"),
  );
});
