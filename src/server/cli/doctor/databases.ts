import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { reasonOf } from "../../../kernel/errors.ts";
import { layoutOf } from "../../areas/backup/archive/verify.ts";
import { scanFiles } from "../../areas/backup/layout.ts";
import { type Finding, finding, type Patient } from "./finding.ts";
import { openDatabase } from "./open-database.ts";

/** `PRAGMA integrity_check` of every database, and its version. */
export function checkDatabases(patient: Patient): Finding {
  const { dataDirectory } = patient;
  const problems: string[] = [];
  let [count, bytes, walBytes] = [0, 0, 0];
  for (const { path, kind } of scanFiles(dataDirectory)) {
    if (kind !== "database") continue;
    const file = join(dataDirectory, path);
    const size = sizeOf(file);
    // An instance that was deleted meanwhile.
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

/** null: there is no such file. */
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
  // Tables of extensions, which this connection does not load, cannot be looked at.
  const damages = found.filter((text) => text !== "ok" && !text.startsWith("unable to validate the inverted index"));
  return [...problems, ...damages.map((text) => `${path}: ${text}`)];
}
