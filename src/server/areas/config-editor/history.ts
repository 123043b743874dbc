import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../../kernel/clock.ts";
import { replaceSmallFile } from "../../disk/small-file.ts";
import { readConfig, writeConfig } from "./config-file.ts";
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

/**
 * Puts the former text of a config back if the present one is an edit with which no server has started yet. Returns whether it was
 * put back. Errors: the files cannot be written.
 */
export function putBackFailedEdit({
  file,
  dataDirectory,
  reason,
  clock,
}: {
  file: string;
  dataDirectory: string;
  reason: string;
  clock: Clock;
}): boolean {
  const history = readHistory(dataDirectory, file);
  const newest = history.writes.at(-1);
  if (newest === undefined || newest.hasStarted || newest.revision !== revisionOf(readConfig(file))) return false;
  writeConfig(file, newest.before);
  const putBack = { at: new Date(clock.now()).toISOString(), reason };
  writeHistory(dataDirectory, { ...history, writes: history.writes.slice(0, -1), putBack });
  return true;
}

/** Notes that a server has started with the present text, so that a later failure has another cause. */
export function noteStarted(file: string, dataDirectory: string): void {
  const history = readHistory(dataDirectory, file);
  const newest = history.writes.at(-1);
  if (newest === undefined || newest.hasStarted || newest.revision !== revisionOf(readConfig(file))) return;
  const writes = [...history.writes.slice(0, -1), { ...newest, hasStarted: true }];
  writeHistory(dataDirectory, { ...history, writes });
}
