import type { Clock } from "../kernel/clock.ts";
import type { Ids } from "../kernel/ids.ts";
import type { Logger } from "../kernel/logger.ts";
import type { Deliveries } from "./deliveries.ts";
import { LOG_TEXT_LENGTH_MAX, RESULTS_PER_WRITE } from "./limits.ts";
import type { NewLogEntry, PushStore } from "./store.ts";
import type { Counts, Message, Outcome, Target } from "./types.ts";

/**
 * Sends a message to one target after another, `atOnce` at a time, and writes what became of each to the log, many in one
 * write. `targets` are asked for as they are needed, so that any number of devices takes the memory of a few. Resolves
 * when all are decided and written. A log that cannot be written fails nobody's message: it is reported.
 */
export type FanOut = (targets: Iterable<Target>, message: Message, options: { atOnce: number }) => Promise<Counts>;

export function createFanOut(deps: {
  store: Pick<PushStore, "record">;
  deliveries: Deliveries;
  clock: Clock;
  ids: Ids;
  logger: Logger;
}): FanOut {
  const { store, deliveries, clock, ids, logger } = deps;

  const entryOf = ({ target, status, error }: Outcome, { title, body }: Message): NewLogEntry => ({
    ...{ id: ids.uuid(), userId: target.userId, status, platform: target.platform, token: target.token },
    ...{ title: shortened(title ?? ""), body: shortened(body ?? "") },
    ...{ error: error === null ? null : shortened(error), timestamp: clock.now() },
  });

  return async (targets, message, { atOnce }) => {
    const counts: Counts = { sent: 0, failed: 0 };
    let entries: NewLogEntry[] = [];

    const write = async (): Promise<void> => {
      const written = entries;
      entries = [];
      if (written.length === 0) return;
      try {
        await store.record(written);
      } catch (cause) {
        logger.error("push: the log cannot be written", { cause, entries: written.length });
      }
    };
    // All of them ask the one iterator: each takes the next target as soon as it is done with the last.
    const iterator = targets[Symbol.iterator]();
    const work = async (): Promise<void> => {
      for (let next = iterator.next(); next.done !== true; next = iterator.next()) {
        const outcome = await deliveries.deliver(next.value, message);
        counts[outcome.status === "sent" ? "sent" : "failed"] += 1;
        entries.push(entryOf(outcome, message));
        if (entries.length >= RESULTS_PER_WRITE) await write();
      }
    };
    await Promise.all(Array.from({ length: atOnce }, work));
    await write();
    return counts;
  };
}

const shortened = (text: string): string =>
  text.length <= LOG_TEXT_LENGTH_MAX ? text : `${text.slice(0, LOG_TEXT_LENGTH_MAX - 1)}…`;
