import type { Database } from "bun:sqlite";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { getLoadablePath } from "sqlite-vec";

/** SQLite would derive it from the file's name, which a build changes. */
const ENTRY_POINT = "sqlite3_vec_init";

export function loadVectorExtension(sqlite: Database, extensionPath: string): void {
  sqlite.loadExtension(extensionPath, ENTRY_POINT);
}

/**
 * The path of sqlite-vec's library, ready to be loaded. In the executable it lies inside, from where no system can load it:
 * it is copied into `directory` when there is no such copy yet. Errors: a message for who starts the server.
 */
export async function extensionFile(directory: string): Promise<string> {
  if (!Bun.isStandaloneExecutable) return getLoadablePath();
  const packaged = await embeddedExtension();
  if (packaged === null) {
    throw new Error(`vectorize: there is no sqlite-vec for ${process.platform} on ${process.arch} in this executable`);
  }
  const path = join(directory, basename(packaged));
  const bytes = readFileSync(packaged);
  if (existsSync(path) && readFileSync(path).equals(bytes)) return path;
  const temporary = `${path}.${process.pid}`;
  writeFileSync(temporary, bytes, { mode: 0o700 });
  renameSync(temporary, path);
  return path;
}

/**
 * Each package is there on its own system only. A build takes in those that are installed, and the path of the one for the
 * system it runs on is asked for; hence five imports by name and no computed one.
 */
async function embeddedExtension(): Promise<string | null> {
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
