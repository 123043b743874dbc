/** The targets of executables: each with the npm package of its runtime, and the module that is sqlite-vec's library. */
export const TARGETS = {
  "bun-linux-x64": {
    platform: "linux",
    arch: "x64",
    runtime: "@oven/bun-linux-x64",
    sqliteVec: "sqlite-vec-linux-x64/vec0.so",
  },
  "bun-linux-arm64": {
    platform: "linux",
    arch: "arm64",
    runtime: "@oven/bun-linux-aarch64",
    sqliteVec: "sqlite-vec-linux-arm64/vec0.so",
  },
  "bun-darwin-arm64": {
    platform: "darwin",
    arch: "arm64",
    runtime: "@oven/bun-darwin-aarch64",
    sqliteVec: "sqlite-vec-darwin-arm64/vec0.dylib",
  },
  "bun-darwin-x64": {
    platform: "darwin",
    arch: "x64",
    runtime: "@oven/bun-darwin-x64",
    sqliteVec: "sqlite-vec-darwin-x64/vec0.dylib",
  },
  "bun-windows-x64": {
    platform: "win32",
    arch: "x64",
    runtime: "@oven/bun-windows-x64",
    sqliteVec: "sqlite-vec-windows-x64/vec0.dll",
  },
} as const;

export type Target = keyof typeof TARGETS;

export const isTarget = (name: string): name is Target => Object.hasOwn(TARGETS, name);

/** Returns the target of this machine; null where none fits. */
export function ownTarget(): Target | null {
  const names = Object.keys(TARGETS).filter(isTarget);
  const isOwn = (name: Target) => TARGETS[name].platform === process.platform && TARGETS[name].arch === process.arch;
  return names.find(isOwn) ?? null;
}

/** Returns the path of Bun in its package for a system. */
export const runtimeFile = (platform: string): string => (platform === "win32" ? "bin/bun.exe" : "bin/bun");
