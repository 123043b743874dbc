import { statfs } from "node:fs/promises";
import { join } from "node:path";

/** Linux magic numbers (statfs(2)) of file systems on which locks or shared memory do not reach all processes and machines. */
const UNSAFE: Readonly<Record<number, string>> = {
  26985: "NFS",
  20859: "SMB",
  4283649346: "SMB (CIFS)",
  4266872130: "SMB 2",
  16914839: "9p",
  1702057286: "FUSE",
  12805120: "Ceph",
  198183888: "Lustre",
  1397113167: "AFS",
  2020557398: "VirtualBox shared folders",
  3133910204: "VMware shared folders",
  2088527475: "Parallels shared folders",
};

/** Folders with databases that may be links to other disks. */
const FOLDERS = ["", "databases", "kv", "d1", "vectorize"];

/**
 * Reports which folders of a data directory lie on a file system on which SQLite's write-ahead log is not safe; one text for each.
 * Only Linux identifies a file system by number.
 */
export async function unsafeFileSystems(dataDirectory: string): Promise<string[]> {
  if (process.platform !== "linux") return [];
  const problems = new Map<string, string>();
  for (const folder of FOLDERS) {
    const path = join(dataDirectory, folder);
    // A missing folder is no problem.
    const name = UNSAFE[(await statfs(path).catch(() => ({ type: 0 }))).type >>> 0];
    if (name === undefined || problems.has(name)) continue;
    problems.set(name, `${path} is on ${name}, where SQLite's write-ahead log is not safe: use a local disk`);
  }
  return [...problems.values()];
}
