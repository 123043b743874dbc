import { existsSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DISK_FREE_MIN_BYTES } from "../../src/server/areas/backup/continuous/limits.ts";
import { SYSTEM_FILE, scanFiles } from "../../src/server/areas/backup/layout.ts";
import { differences } from "./page-differences.ts";

/** Whether every server of the tests is backed up continuously, and compared with its restore when it stops. */
export const IS_CONTINUOUS = process.env["PLATFORM_CONTINUOUS"] === "1";

const STORE = "continuous-store";
const ENDING = ".db";

/** Writes a config beside the test's, which adds continuous backup to it. */
export function withContinuous(directory: string): string {
  const file = join(directory, "continuous.config.ts");
  const to = JSON.stringify({ folder: join(directory, STORE) });
  writeFileSync(
    file,
    `import config from "./platform.config.ts";
const continuous = { to: ${to}, everyMs: 250, verify: false };
export default { ...config, backups: { continuous, ...config.backups } };\n`,
  );
  return file;
}

/** Restores what a stopped server has stored, and compares every database with it. Errors: one differs, or is missing. */
export async function requireEqualRestore(
  command: readonly string[],
  { directory, dataDirectory }: { directory: string; dataDirectory: string },
): Promise<void> {
  // Tests remove the directory, or give it a disk that has no room for commits that wait.
  if (!existsSync(join(dataDirectory, SYSTEM_FILE))) return;
  const { bavail, bsize } = statfsSync(dataDirectory);
  if (bavail * bsize < DISK_FREE_MIN_BYTES) return;
  const copy = join(directory, `continuous-copy-${Bun.nanoseconds()}`);
  const child = Bun.spawn([...command, "restore", join(directory, STORE), "--data", copy], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  const [stderr, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  if (code !== 0) throw new Error(`the continuous backup could not be restored: ${stderr}`);
  const databases = [...scanFiles(dataDirectory)].filter(({ kind }) => kind === "database").map(({ path }) => path);
  const wrong = databases
    .map((path) => ({ path, pages: differences(join(dataDirectory, path), join(copy, path)) }))
    .filter(({ pages }) => pages.length > 0);
  const more = [...scanFiles(copy)].filter(({ path }) => path.endsWith(ENDING) && !databases.includes(path));
  if (wrong.length + more.length > 0) {
    throw new Error(`a restore differs from the server: ${JSON.stringify({ wrong, more })}`);
  }
}
