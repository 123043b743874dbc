import { accessSync, existsSync, constants as fsConstants, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { isMissing, reasonOf } from "../../../kernel/errors.ts";
import { layoutOf } from "../../areas/backup/archive/verify.ts";
import { RESTORE_FOLDER, SECRETS_FILE, scanFiles } from "../../areas/backup/layout.ts";
import { DISK_FREE_MIN_BYTES } from "../../areas/system/limits.ts";
import { unsafeFileSystems } from "../../disk/file-system.ts";
import { checkStorage } from "./orphans.ts";
import { type Finding, finding, openDatabase, type Patient } from "./patient.ts";

export interface DoctorCheck {
  name: string;
  /** null: there is nothing to check. */
  look(patient: Patient): Finding | null | Promise<Finding | null>;
}

async function checkDisk({ dataDirectory }: Patient): Promise<Finding> {
  const { bavail, bsize } = await statfs(dataDirectory);
  const freeBytes = bavail * bsize;
  const full = freeBytes < DISK_FREE_MIN_BYTES ? ["the disk has less than 64 MiB left"] : [];
  return finding([...full, ...(await unsafeFileSystems(dataDirectory))], { freeBytes });
}

/**
 * Checks the directory's permissions: it contains password hashes, secrets and all records, which other accounts of the machine
 * must not read.
 */
function checkPermissions({ dataDirectory }: Patient): Finding {
  const problems: string[] = [];
  const isShared = (path: string): boolean => (statSync(path).mode & 0o077) !== 0;
  if (process.platform !== "win32") {
    if (isShared(dataDirectory)) problems.push(`other accounts may enter ${dataDirectory}: chmod 700`);
    const secrets = join(dataDirectory, SECRETS_FILE);
    if (existsSync(secrets) && isShared(secrets)) problems.push(`other accounts may read ${secrets}: chmod 600`);
  }
  for (const { path, kind } of scanFiles(dataDirectory)) {
    if (kind !== "database") continue;
    try {
      accessSync(join(dataDirectory, path), fsConstants.R_OK | fsConstants.W_OK);
    } catch (cause) {
      // The instance was deleted meanwhile.
      if (!isMissing(cause)) problems.push(`${path} cannot be read and written by this account`);
    }
  }
  return finding(problems);
}

function checkDirectory({ dataDirectory }: Patient): Finding {
  const problems: string[] = [];
  if (existsSync(join(dataDirectory, RESTORE_FOLDER))) problems.push("a restore is running, or was interrupted");
  let strangers = 0;
  for (const { kind } of scanFiles(dataDirectory)) if (kind === "stranger") strangers += 1;
  return finding(problems, { strangers });
}

/** The checks, in order of execution. Areas add theirs here. */
export const DOCTOR_CHECKS: readonly DoctorCheck[] = [
  { name: "disk", look: checkDisk },
  { name: "permissions", look: checkPermissions },
  { name: "directory", look: checkDirectory },
  { name: "files", look: checkDatabases },
  { name: "storage", look: checkStorage },
];

/** Runs `PRAGMA integrity_check` on every database, and checks its version. */
function checkDatabases(patient: Patient): Finding {
  const { dataDirectory } = patient;
  const problems: string[] = [];
  let [count, bytes, walBytes] = [0, 0, 0];
  for (const { path, kind } of scanFiles(dataDirectory)) {
    if (kind !== "database") continue;
    const file = join(dataDirectory, path);
    const size = sizeOf(file);
    // The instance was deleted meanwhile.
    if (size === null) continue;
    count += 1;
    bytes += size;
    walBytes += sizeOf(`${file}-wal`) ?? 0;
    if (size === 0) {
      problems.push(`${path} is empty (0 bytes): its data was lost, or a crash interrupted its making`);
      continue;
    }
    try {
      problems.push(...problemsOf(patient, path));
    } catch (cause) {
      if (existsSync(file)) problems.push(`${path}: ${reasonOf(cause)}`);
    }
  }
  return finding(problems, { count, bytes, walBytes });
}

/** Returns the size of a file; null: it does not exist. */
const sizeOf = (file: string): number | null => statSync(file, { throwIfNoEntry: false })?.size ?? null;

function problemsOf(patient: Patient, path: string): string[] {
  using sqlite = openDatabase(patient, path);
  const problems: string[] = [];
  const known = layoutOf(path)?.steps.length;
  const version = Number(sqlite.query("PRAGMA user_version").values()[0]?.[0] ?? 0);
  if (known !== undefined && version > known) {
    problems.push(`${path} has version ${version}, and this executable knows versions up to ${known}`);
  }
  const found = sqlite
    .query("PRAGMA integrity_check(5)")
    .values()
    .map(([text]) => String(text));
  // Tables of extensions, which this connection does not load, cannot be checked.
  const damages = found.filter((text) => text !== "ok" && !text.startsWith("unable to validate the inverted index"));
  return [...problems, ...damages.map((text) => `${path}: ${text}`)];
}
