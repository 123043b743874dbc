import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ARGON2ID = 2;
/** The packages of the library, by architecture: for Linux with glibc, where servers run. Elsewhere Bun's own argon2 does the work. */
const PACKAGES: Readonly<Record<string, string>> = {
  x64: "@node-rs/argon2-linux-x64-gnu",
  arm64: "@node-rs/argon2-linux-arm64-gnu",
};

/** The functions of the library that are used here. */
interface Library {
  hash(password: string, options: object): Promise<string>;
  verify(hash: string, password: string): Promise<boolean>;
  hashSync(password: string, options: object): string;
  verifySync(hash: string, password: string): boolean;
}

/** Returns the options of the library for argon2id with one lane. */
export const libraryOptions = ({ memoryCost, timeCost }: { memoryCost: number; timeCost: number }) => ({
  algorithm: ARGON2ID,
  memoryCost,
  timeCost,
  parallelism: 1,
});

let placed: Promise<string | null> | null = null;
let loaded: { path: string; functions: Library | null } | null = null;

/** Returns the path from which processes of this account can load the library while this process lives; null: there is none. */
export const libraryPath = (): Promise<string | null> => {
  placed ??= place();
  return placed;
};

/** Returns the library at the path; null where this system cannot load it. */
export function libraryAt(path: string | null): Library | null {
  if (path === null) return null;
  if (loaded?.path !== path) loaded = { path, functions: load(path) };
  return loaded.functions;
}

async function place(): Promise<string | null> {
  if (process.platform !== "linux") return null;
  try {
    const path = Bun.isStandaloneExecutable
      ? await placeEmbedded()
      : Bun.resolveSync(PACKAGES[process.arch] ?? "", import.meta.dir);
    return libraryAt(path) === null ? null : path;
  } catch {
    // The file system allows no libraries, or the package is not installed.
    return null;
  }
}

/** Returns the path of the library in the executable. */
export const embeddedLibrary = async (): Promise<string> =>
  (await import("platform:argon2", { with: { type: "file" } })).default;

/**
 * Writes the embedded library to a file that has no name any more once it is open: nobody else can change it, and nothing is left behind,
 * however this process ends.
 */
async function placeEmbedded(): Promise<string> {
  const packaged = await embeddedLibrary();
  const directory = mkdtempSync(join(tmpdir(), "platform-argon2-"));
  try {
    const file = join(directory, "library");
    writeFileSync(file, readFileSync(packaged), { mode: 0o500 });
    return `/proc/${process.pid}/fd/${openSync(file, "r")}`;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function load(path: string): Library | null {
  const loading = { exports: {} };
  try {
    process.dlopen(loading, path);
    // The package of this version declares them.
    return loading.exports as Library;
  } catch {
    return null;
  }
}
