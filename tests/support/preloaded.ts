import { join, resolve } from "node:path";
import { temporaryDirectory } from "./platform.ts";

/** Compiles a file of this folder into a library for LD_PRELOAD. Returns its path; null where that is not possible. */
export function preloaded(source: string): string | null {
  if (process.platform !== "linux" || Bun.which("cc") === null) return null;
  const library = join(temporaryDirectory(), `${source}.so`);
  const command = ["cc", "-shared", "-fPIC", "-o", library, resolve(import.meta.dir, source), "-ldl"];
  return Bun.spawnSync(command, { stderr: "ignore" }).success ? library : null;
}
