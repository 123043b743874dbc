import type { Clock } from "../../../kernel/clock.ts";
import { ANSWERS_DELAY_MS, ANSWERS_MAX } from "./limits.ts";
import type { WorkerAnswer } from "./messages.ts";

/** Reads reported answers, which a process of this server, or of a node of its cluster, has written. */
export const answersIn = (report: string): readonly WorkerAnswer[] => JSON.parse(report);

/** Collects answers, and reports several at once, as JSON: see `answersIn`. */
export function createReports(clock: Clock, report: (answers: string) => void) {
  let waiting: WorkerAnswer[] = [];
  let count = 0;
  const flush = (): void => {
    const batch = waiting;
    waiting = [];
    if (batch.length > 0) report(JSON.stringify(batch));
  };
  return {
    /** Answers since the start. */
    get count(): number {
      return count;
    },
    add(answer: WorkerAnswer): void {
      count += 1;
      waiting.push(answer);
      if (waiting.length === 1) clock.after(ANSWERS_DELAY_MS, flush);
      else if (waiting.length === ANSWERS_MAX) flush();
    },
    flush,
  };
}
