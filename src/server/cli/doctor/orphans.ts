import type { Database } from "bun:sqlite";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { objectPath, SYSTEM_FILE, scanFiles } from "../../areas/backup/layout.ts";
import { OWNER_ID_FILE } from "../../disk/owner-id.ts";
import { ORPHAN_AGE_MS } from "../limits.ts";
import { type Finding, finding, openDatabase, type Patient } from "./patient.ts";

/** Finds contents that no file names, and files whose content is missing. */
export function checkStorage(patient: Patient): Finding {
  const { dataDirectory } = patient;
  using system = openDatabase(patient, SYSTEM_FILE);
  const problems: string[] = [];
  let [contents, orphans] = [0, 0];
  const named = system.query<unknown, [string]>(
    ["storage_objects", "storage_parts", "storage_claims"]
      .map((table) => `SELECT 1 FROM ${table} WHERE "fileId" = ?1`)
      .join(" UNION ALL "),
  );
  // Young ones may belong to uploads in progress.
  const oldUntil = Date.now() - ORPHAN_AGE_MS;
  for (const { path: found, kind } of scanFiles(dataDirectory, "storage")) {
    if (kind !== "object") continue;
    contents += 1;
    const id = found.slice(found.lastIndexOf("/") + 1);
    const isOld = (statSync(join(dataDirectory, found), { throwIfNoEntry: false })?.mtimeMs ?? oldUntil) < oldUntil;
    if (!isOld || named.get(id) !== null) continue;
    orphans += 1;
    problems.push(`${found} belongs to no file; the server removes such contents while it runs`);
  }
  // A second connection, which sees what a running server has changed since the search began.
  using live = openDatabase(patient, SYSTEM_FILE);
  return finding([...problems, ...missing({ system, live, dataDirectory })], { contents, orphans });
}

interface Stored {
  bucket: string;
  key: string;
  fileId: string;
}

/**
 * Returns the files whose content is missing. Where the server has used an object store or a backup target, which its owner's id
 * shows, only files of buckets with contents here are checked: those of others may be in the object store.
 */
function missing({
  system,
  live,
  dataDirectory,
}: {
  system: Database;
  live: Database;
  dataDirectory: string;
}): string[] {
  const lost = new Map<string, string[]>();
  const present = new Set<string>();
  const all = system.query<Stored, []>(`SELECT "bucket", "key", "fileId" FROM storage_objects
    UNION ALL SELECT "bucket", 'a file of a record, ' || "fileId", "fileId" FROM storage_claims`);
  // A content is removed after its record, so one that was deleted or replaced meanwhile is not missing.
  const named = live.query<unknown, [string]>(
    `SELECT 1 FROM storage_objects WHERE "fileId" = ?1 UNION ALL SELECT 1 FROM storage_claims WHERE "fileId" = ?1`,
  );
  for (const { bucket, key, fileId } of all.iterate()) {
    if (existsSync(join(dataDirectory, objectPath("objects", fileId)))) present.add(bucket);
    else if (named.get(fileId) !== null)
      lost.set(bucket, [...(lost.get(bucket) ?? []).slice(0, 100), `the content of ${bucket}/${key} is missing`]);
  }
  const mayBeElsewhere = existsSync(join(dataDirectory, OWNER_ID_FILE));
  return [...lost].flatMap(([bucket, problems]) => (present.has(bucket) || !mayBeElsewhere ? problems : []));
}
