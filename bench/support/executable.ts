import { join, resolve } from "node:path";

const root = resolve(import.meta.dir, "../..");

/** Returns PLATFORM_EXECUTABLE, or builds an executable; exits the process if that fails. */
export function executableToMeasure(): string {
  const given = process.env["PLATFORM_EXECUTABLE"];
  if (given !== undefined && given !== "") return resolve(given);
  const build = Bun.spawnSync([process.execPath, join(root, "scripts/build.ts")], {
    stdio: ["ignore", "inherit", "inherit"],
  });
  if (!build.success) process.exit(1);
  return join(root, "dist/platform");
}
