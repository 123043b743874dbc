import { expect, test } from "bun:test";
import { backupName, isBackupName, isRemains, outdated } from "./names.ts";

test("[BK21] the name of a scheduled backup is its time, and names sort by time", () => {
  const name = backupName(new Date("2026-01-31T02:00:00.123Z"));
  expect(name).toBe("platform-2026-01-31T02-00-00Z.tar.zst");
  expect([isBackupName(name), isRemains(`${name}.partial`)]).toEqual([true, true]);
});

test("[BK21] only the oldest backups are outdated, and no files with similar names", () => {
  const [one, two, three] = [1, 2, 3].map((day) => backupName(new Date(Date.UTC(2026, 0, day))));
  const others = ["notes.txt", "platform-backup.tar.zst", `${one}.partial`, `${one}.old`, `my-${one}`, "platform-"];
  const names = [three, ...others, one, two].map(String);
  expect(outdated(names, 1)).toEqual([one, two].map(String));
  expect(outdated(names, 2)).toEqual([String(one)]);
  expect(outdated(names, 3)).toEqual([]);
  expect(outdated(others, 1)).toEqual([]);
  expect(others.filter(isRemains)).toEqual([`${one}.partial`]);
});
