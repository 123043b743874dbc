import type { Clock } from "../../../kernel/clock.ts";
import type { WorkerFigures } from "../../db/readers/shared-page.ts";
import { busyMs } from "./busy-loop.ts";
import { IDLE_MS, IDLE_SIGN_MS, SIGN_MS } from "./limits.ts";

const KIB = 1024;
const MICROSECONDS_PER_MS = 1000;

type Sign = Omit<WorkerFigures, "answered" | "forwarded">;

/**
 * Gives a sign of life at an interval, with figures. Returns a function that ends it. `requests` counts those since the start; after a
 * while without any, `rest` is called, and signs are fewer. `now`: milliseconds with fractions.
 */
export function giveSigns(
  clock: Clock,
  {
    requests,
    give,
    rest,
    now: time = () => performance.now(),
  }: { requests(): number; give(sign: Sign): void; rest(): void; now?: () => number },
): () => void {
  let signs = 0;
  let dueAt = time();
  let known = -1;
  let requestedAt = 0;
  let isResting = false;
  let cancel = () => {};
  const sign = (): void => {
    const now = time();
    signs += 1;
    if (requests() !== known) {
      known = requests();
      requestedAt = now;
      isResting = false;
    } else if (!isResting && now - requestedAt >= IDLE_MS) {
      isResting = true;
      rest();
    }
    give({
      signs,
      memoryKiB: process.memoryUsage.rss() / KIB,
      loopUs: Math.max(0, now - dueAt) * MICROSECONDS_PER_MS,
      busyMs: busyMs(),
    });
    const delayMs = isResting ? IDLE_SIGN_MS : SIGN_MS;
    dueAt = time() + delayMs;
    cancel = clock.after(delayMs, sign);
  };
  sign();
  return () => cancel();
}
