import type { Clock } from "../../../kernel/clock.ts";
import { readConfig, writeConfig } from "./config-file.ts";
import { readHistory, revisionOf, writeHistory } from "./history.ts";

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
