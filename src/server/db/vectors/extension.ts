import { Database } from "bun:sqlite";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { getLoadablePath } from "sqlite-vec";
import { reasonOf } from "../../../kernel/errors.ts";
import { replaceSmallFile } from "../../disk/small-file.ts";
import { loadVectorExtension } from "./load.ts";

/** Library of sqlite-vec, at a path from which it can be loaded. */
export interface ExtensionFile {
  path: string;
  /** Removes files created for this server only. */
  remove(): void;
}

/**
 * Places the library in a file. No system can load it from within the executable, so it is copied into `directory`, unless that has
 * a copy, or into the system's temporary directory if `directory` is on a file system mounted `noexec`. Errors: a message for the
 * operator.
 */
export async function extensionFile(directory: string): Promise<ExtensionFile> {
  if (!Bun.isStandaloneExecutable) return { path: getLoadablePath(), remove: () => {} };
  const packaged = await embeddedExtension();
  if (packaged === null) {
    throw new Error(`vectorize: there is no sqlite-vec for ${process.platform} on ${process.arch} in this executable`);
  }
  return placeExtension({ name: basename(packaged), content: readFileSync(packaged), directory, fallback: tmpdir() });
}

/** Copies the library to a directory from which it can be loaded. Exported for its test. Errors: neither directory allows that. */
export function placeExtension(options: {
  name: string;
  content: Buffer;
  directory: string;
  fallback: string;
}): ExtensionFile {
  const { name, content, directory, fallback } = options;
  const path = join(directory, name);
  copyTo(path, content);
  const reason = loadFailure(path);
  if (reason === null) return { path, remove: () => {} };
  let ownDirectory: string | null = null;
  let fallbackReason: string | null;
  try {
    // A new directory for this user only: in a world-writable directory, a file with a known name could be another user's library.
    ownDirectory = mkdtempSync(join(fallback, "platform-vec-"));
    const ownPath = join(ownDirectory, name);
    copyTo(ownPath, content);
    fallbackReason = loadFailure(ownPath);
    const made = ownDirectory;
    if (fallbackReason === null) {
      return { path: ownPath, remove: () => rmSync(made, { recursive: true, force: true }) };
    }
  } catch (cause) {
    fallbackReason = reasonOf(cause);
  }
  if (ownDirectory !== null) rmSync(ownDirectory, { recursive: true, force: true });
  throw new Error(
    `vectorize: sqlite-vec can be loaded from neither ${directory} (${reason}) nor ${fallback} (${fallbackReason}). ` +
      "A file system that is mounted noexec allows no libraries: mount one of them without it, or set TMPDIR to a " +
      "directory on another file system",
  );
}

function copyTo(path: string, content: Buffer): void {
  if (existsSync(path) && readFileSync(path).equals(content)) return;
  try {
    replaceSmallFile(path, content);
  } catch (cause) {
    throw new Error(`vectorize: sqlite-vec could not be written to ${path}: ${reasonOf(cause)}`, { cause });
  }
}

/** Returns why SQLite cannot load the library; null if it can. */
function loadFailure(path: string): string | null {
  const sqlite = new Database(":memory:");
  try {
    loadVectorExtension(sqlite, path);
    return null;
  } catch (cause) {
    return reasonOf(cause);
  } finally {
    sqlite.close();
  }
}

/**
 * Returns the path of the embedded library; null if there is none for this system. Each package is installed on its own system only,
 * and a build embeds the installed ones, which requires five imports by name instead of a computed one.
 */
export async function embeddedExtension(): Promise<string | null> {
  try {
    switch (`${process.platform}-${process.arch}`) {
      case "linux-x64":
        return (await import("sqlite-vec-linux-x64/vec0.so", { with: { type: "file" } })).default;
      case "linux-arm64":
        return (await import("sqlite-vec-linux-arm64/vec0.so", { with: { type: "file" } })).default;
      case "darwin-x64":
        return (await import("sqlite-vec-darwin-x64/vec0.dylib", { with: { type: "file" } })).default;
      case "darwin-arm64":
        return (await import("sqlite-vec-darwin-arm64/vec0.dylib", { with: { type: "file" } })).default;
      case "win32-x64":
        return (await import("sqlite-vec-windows-x64/vec0.dll", { with: { type: "file" } })).default;
      default:
        return null;
    }
  } catch {
    return null;
  }
}
