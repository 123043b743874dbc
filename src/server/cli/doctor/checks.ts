import { accessSync, existsSync, constants as fsConstants, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { isMissing, RESTORE_FOLDER, SECRETS_FILE, scanFiles } from "../../areas/backup/layout.ts";
import { DISK_FREE_MIN_BYTES } from "../../areas/system/limits.ts";
import { unsafeFileSystems } from "../../disk/file-system.ts";
import { checkDatabases } from "./databases.ts";
import { type Finding, finding, type Patient } from "./finding.ts";
import { checkStorage } from "./orphans.ts";

export interface DoctorCheck {
  name: string;
  look(patient: Patient): Finding | Promise<Finding>;
}

async function checkDisk({ dataDirectory }: Patient): Promise<Finding> {
  const { bavail, bsize } = await statfs(dataDirectory);
  const freeBytes = bavail * bsize;
  const full = freeBytes < DISK_FREE_MIN_BYTES ? ["the disk has less than 64 MiB left"] : [];
  return finding([...full, ...(await unsafeFileSystems(dataDirectory))], { freeBytes });
}

/** It has password hashes, secrets and all records: other accounts of the machine must not read it. */
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
      // An instance that was deleted meanwhile.
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

/** In this order. Areas add theirs here. */
export const DOCTOR_CHECKS: readonly DoctorCheck[] = [
  { name: "disk", look: checkDisk },
  { name: "permissions", look: checkPermissions },
  { name: "directory", look: checkDirectory },
  { name: "files", look: checkDatabases },
  { name: "storage", look: checkStorage },
];
