import { existsSync, readdirSync, readFileSync } from "node:fs";

const MICROS_PER_TICK = 10_000;

/** Returns the text of a file in /proc; empty if its process or thread has ended. */
function procText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** Returns the microseconds of processor time of a process itself. */
export function ownProcessorTime(pid: number): number {
  const [, fields = ""] = procText(`/proc/${pid}/stat`).split(") ");
  const own = fields.split(" ").slice(11, 13);
  return own.reduce((sum, ticks) => sum + Number(ticks) * MICROS_PER_TICK, 0);
}

/** Returns the microseconds of processor time of a process, including its query processes, running or ended. */
export function processorTime(pid: number): number {
  const [, fields = ""] = procText(`/proc/${pid}/stat`).split(") ");
  const own = fields
    .split(" ")
    .slice(11, 15)
    .reduce((sum, ticks) => sum + Number(ticks) * MICROS_PER_TICK, 0);
  const threads = existsSync(`/proc/${pid}/task`) ? readdirSync(`/proc/${pid}/task`) : [];
  const children = threads.flatMap((thread) =>
    procText(`/proc/${pid}/task/${thread}/children`)
      .split(" ")
      .filter((one) => one !== ""),
  );
  return children.reduce((sum, child) => sum + processorTime(Number(child)), own);
}
