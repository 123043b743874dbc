/** Matches the place of a stack frame. */
const PLACE = /\(?([^()\s]+):(\d+):\d+\)?$/;
/** The folder of this program's sources, or of its modules in an executable. */
const OWN = import.meta.dir.replace(/kernel[/\\]observing$/, "");

/**
 * Returns file and line of the code that called `called`; null where it cannot be told: a call that is returned at once
 * (`return table.list()`) leaves no frame.
 */
export function callerLine(called: (...given: never[]) => unknown): string | null {
  const trace: { stack?: string } = {};
  Error.captureStackTrace(trace, called);
  for (const frame of (trace.stack ?? "").split("\n").slice(1)) {
    const [, path, line] = PLACE.exec(frame) ?? [];
    if (path === undefined || path.startsWith("native")) continue;
    return path.startsWith(OWN) ? null : `${path}:${line}`;
  }
  return null;
}
