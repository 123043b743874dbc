import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Processes and directories of a test run, which must not outlive it. */
const children = new Set<Bun.Subprocess>();
const directories = new Set<string>();

export function ownChild(child: Bun.Subprocess): void {
  children.add(child);
  void child.exited.then(() => children.delete(child));
}

/** Creates a temporary directory that is removed when the test run ends. */
export function temporaryDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), "platform-test-"));
  directories.add(path);
  return path;
}

export function removeDirectory(path: string): void {
  directories.delete(path);
  rmSync(path, { recursive: true, force: true });
}

/** Kills what failed tests left running. Synchronous, so that it works in an exit listener. */
export function endEverything(): void {
  for (const child of children) child.kill("SIGKILL");
  children.clear();
  for (const path of directories) rmSync(path, { recursive: true, force: true });
  directories.clear();
}
