const NAME = /^platform-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ\.tar\.zst$/;
const TIME = /^platform-(\d{4}-\d\d-\d\d)T(\d\d-\d\d-\d\d)Z\.tar\.zst$/;
/** The work folders that a killed backup or verification leaves. */
const REMAINS = /^(platform-.*\.tar\.zst)(?:\.failed)?\.(?:partial|verify)$/;
const FAILED = ".failed";

/** `platform-2026-01-31T02-00-00Z.tar.zst`: names sort by time. */
export const backupName = (time: Date): string =>
  `platform-${time.toISOString().slice(0, "2026-01-31T02:00:00".length).replaceAll(":", "-")}Z.tar.zst`;

/** The start of the backup with this name, in milliseconds since 1970; null for any other name. */
export function timeOfName(name: string): number | null {
  const [, day = "", time = ""] = TIME.exec(name) ?? [];
  const at = Date.parse(`${day}T${time.replaceAll("-", ":")}Z`);
  return Number.isNaN(at) ? null : at;
}

export const isBackupName = (name: string): boolean => NAME.test(name);

/** The name under which a backup that could not be verified is kept. */
export const failedName = (name: string): string => name + FAILED;

export const isFailedName = (name: string): boolean =>
  name.endsWith(FAILED) && isBackupName(name.slice(0, -FAILED.length));

export const isRemains = (name: string): boolean => isBackupName(REMAINS.exec(name)?.[1] ?? "");

/** Whether a file is a backup, or one that is kept as failed. */
export const isOwnName = (name: string): boolean => isBackupName(name) || isFailedName(name);

/** The start of the backup with this name, also of one that is kept as failed; null for any other name. */
export const timeOfOwn = (name: string): number | null =>
  timeOfName(isFailedName(name) ? name.slice(0, -FAILED.length) : name);

/** The backups beyond the newest `keep`, oldest first. Files with other names are not backups. */
export function outdated(names: readonly string[], keep: number): string[] {
  const own = names.filter(isBackupName).sort();
  return own.slice(0, Math.max(0, own.length - keep));
}
