import { readFileSync } from "node:fs";
import { join } from "node:path";
import { replaceSmallFile } from "../../disk/small-file.ts";
import { UNDO_MAX } from "./limits.ts";

/** The name of the file in the data directory. Its owner alone may read it: configs contain secrets. */
export const HISTORY_FILE = "config-edits.json";

/** A write that can be undone. */
export interface Write {
  /** The text before. */
  before: string;
  /** The revision of the text that was written. */
  revision: string;
  /** The statements of the migrations that the write contains; null for none. */
  migration: string | null;
  /** Whether a server has started with it. */
  hasStarted: boolean;
}

/** A write that was put back, because the server did not start with it. */
export interface PutBack {
  /** The time, in ISO 8601. */
  at: string;
  reason: string;
}

interface History {
  /** The config's path. The writes of another one are forgotten. */
  file: string;
  writes: Write[];
  putBack: PutBack | null;
}

/** Returns the revision of a text: its SHA-256 in hex. */
export const revisionOf = (text: string): string => new Bun.CryptoHasher("sha256").update(text).digest("hex");

/** Reads the writes of a config from the data directory; none where the file is missing, or is another config's. */
export function readHistory(dataDirectory: string, file: string): History {
  const none: History = { file, writes: [], putBack: null };
  try {
    // This program alone writes it.
    const found = JSON.parse(readFileSync(join(dataDirectory, HISTORY_FILE), "utf8")) as History;
    return found.file === file ? found : none;
  } catch {
    return none;
  }
}

/** Replaces the history, of which the newest writes are kept. Durable when it returns. */
export function writeHistory(dataDirectory: string, history: History): void {
  const text = JSON.stringify({ ...history, writes: history.writes.slice(-UNDO_MAX) });
  replaceSmallFile(join(dataDirectory, HISTORY_FILE), text);
}
