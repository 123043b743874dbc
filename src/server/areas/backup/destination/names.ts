import type { Millis } from "../../../../kernel/clock.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import { NAMES_AHEAD_MAX_MS } from "../limits.ts";

const NAME = /^platform-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ\.tar\.zst$/;
const TIME = /^platform-(\d{4}-\d\d-\d\d)T(\d\d-\d\d-\d\d)Z\.tar\.zst$/;
/** Work folders that a killed backup or verification leaves. */
const REMAINS = /^(platform-.*\.tar\.zst)(?:\.failed)?\.(?:partial|verify)$/;
const FAILED = ".failed";

/** Returns the name of a backup, such as `platform-2026-01-31T02-00-00Z.tar.zst`: names sort by time. */
export const backupName = (time: Date): string =>
  `platform-${time.toISOString().slice(0, "2026-01-31T02:00:00".length).replaceAll(":", "-")}Z.tar.zst`;

/** Returns the start of the backup with this name, in milliseconds since 1970; null for any other name. */
export function timeOfName(name: string): number | null {
  const [, day = "", time = ""] = TIME.exec(name) ?? [];
  const at = Date.parse(`${day}T${time.replaceAll("-", ":")}Z`);
  return Number.isNaN(at) ? null : at;
}

export const isBackupName = (name: string): boolean => NAME.test(name);

/** Returns the name under which a backup that failed verification is kept. */
export const failedName = (name: string): string => name + FAILED;

export const isFailedName = (name: string): boolean =>
  name.endsWith(FAILED) && isBackupName(name.slice(0, -FAILED.length));

export const isRemains = (name: string): boolean => isBackupName(REMAINS.exec(name)?.[1] ?? "");

/** Whether a name is that of a backup, or of one that is kept as failed. */
export const isOwnName = (name: string): boolean => isBackupName(name) || isFailedName(name);

/**
 * Returns the start of the backup with this name, in milliseconds since 1970, also of one that is kept as failed; null for
 * any other name.
 */
export const timeOfOwn = (name: string): number | null =>
  timeOfName(isFailedName(name) ? name.slice(0, -FAILED.length) : name);

/**
 * Returns the name of a backup that starts now. It is later than any present name, so that it sorts as the newest and
 * replaces none, even when several are made within one second. Names further ahead than NAMES_AHEAD_MAX_MS come from a
 * clock that was wrong, and are ignored.
 */
export function nextName(present: readonly string[], now: Millis): string {
  const taken = new Set(present.map(timeOfOwn));
  let at = now;
  for (const time of taken) {
    if (time !== null && time <= now + NAMES_AHEAD_MAX_MS) at = Math.max(at, time + SECOND_MS);
  }
  // At the end of that range the next second may be one of those ahead.
  while (taken.has(Math.floor(at / SECOND_MS) * SECOND_MS)) at += SECOND_MS;
  return backupName(new Date(at));
}

/**
 * Returns the backups beyond the newest `keep`, oldest first. Files with other names are not backups. `made` is the newest
 * of all: later names come from a clock that was wrong, so they count as the oldest.
 */
export function outdated(names: readonly string[], { made, keep }: { made: string; keep: number }): string[] {
  const own = names.filter(isBackupName).sort();
  const ahead = own.filter((name) => name > made);
  const ordered = [...ahead, ...own.slice(0, own.length - ahead.length)];
  return ordered.slice(0, Math.max(0, ordered.length - keep));
}
