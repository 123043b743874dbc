import { type Clock, pause } from "../../../../kernel/clock.ts";
import type { Ids } from "../../../../kernel/ids.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { LOG_TEXT_LENGTH_MAX, PAGE_RETRY_MS, PAGE_TRIES_MAX, PARKED_MAX, RESULTS_PER_WRITE } from "../limits.ts";
import type { Counts, Message, Outcome, Target } from "../message.ts";
import type { NewLogEntry, PushStore } from "../store.ts";
import type { Deliveries } from "./deliveries.ts";

/** Reads the next target; null at the end. May be called again after an exception. */
export type NextTarget = () => Target | null;

/** A message to many targets that is being sent. */
interface Sending {
  /** Resolves when every target has been tried or waits for its service. Rejects if targets cannot be read; the rest are skipped. */
  tried: Promise<void>;
  /** Resolves when all results are known and logged. Never rejects. */
  done: Promise<Counts>;
}

/**
 * Sends a message to all targets, `atOnce` concurrently, and logs the results, many per transaction. Targets are read as they
 * are needed, so memory does not grow with their number. If the log cannot be written, the error is reported and messages are
 * sent nevertheless. [PU100]
 */
export type FanOut = (next: NextTarget, message: Message, options: FanOutOptions) => Sending;

interface FanOutOptions {
  atOnce: number;
  /** Targets whose service is unavailable wait until this is aborted, without delaying others; null: they fail at once. */
  patience: AbortSignal | null;
  /** Returns true to leave a result to a later try; it is then neither counted nor logged. Default: never. */
  isLeft?: (outcome: Outcome) => boolean;
  /** Called when a target has its result. */
  onSettled?: (target: Target) => void;
}

export function createFanOut(deps: {
  store: Pick<PushStore, "record">;
  deliveries: Deliveries;
  clock: Clock;
  ids: Ids;
  logger: Logger;
}): FanOut {
  const { store, deliveries, clock, ids, logger } = deps;

  /** Reads the next target, with retries, for instance because the file is busy. [PU101] */
  const patientNext = async (next: NextTarget): Promise<Target | null> => {
    for (let tries = 1; ; tries++) {
      try {
        return next();
      } catch (cause) {
        if (tries === PAGE_TRIES_MAX) throw cause;
        await pause(clock, PAGE_RETRY_MS);
      }
    }
  };
  const entryOf = ({ target, status, error }: Outcome, { title, body }: Message): NewLogEntry => ({
    id: ids.uuid(),
    userId: target.userId,
    status,
    platform: target.platform,
    token: target.token,
    title: shortened(title ?? ""),
    body: shortened(body ?? ""),
    error: error === null ? null : shortened(error),
    timestamp: clock.now(),
  });

  /** Waiting targets of all messages together. */
  const parked = createParking(PARKED_MAX);

  return (nextTarget, message, { atOnce, patience, isLeft = () => false, onSettled = () => {} }) => {
    const counts: Counts = { sent: 0, failed: 0 };
    let entries: NewLogEntry[] = [];
    const undecided = new Set<Promise<void>>();
    let isBroken = false;

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
    const decide = async (outcome: Outcome): Promise<void> => {
      if (isLeft(outcome)) return;
      onSettled(outcome.target);
      counts[outcome.status === "sent" ? "sent" : "failed"] += 1;
      entries.push(entryOf(outcome, message));
      if (entries.length >= RESULTS_PER_WRITE) await write();
    };
    /** Sends to one target. Resolves when the result is known, or when the target waits for its service. */
    const send = async (target: Target): Promise<void> => {
      if (patience === null) return decide(await deliveries.deliver(target, message));
      await parked.room();
      const waiting = Promise.withResolvers<void>();
      let leave: (() => void) | null = null;
      const onWaiting = (): void => {
        leave ??= parked.enter();
        waiting.resolve();
      };
      const deciding = deliveries.deliverPatiently(target, message, { patience, onWaiting }).then(async (outcome) => {
        await decide(outcome);
        leave?.();
        undecided.delete(deciding);
      });
      undecided.add(deciding);
      await Promise.race([deciding, waiting.promise]);
    };
    const work = async (): Promise<void> => {
      while (!isBroken) {
        const target = await patientNext(nextTarget);
        if (target === null) return;
        await send(target);
      }
    };
    const workers = Array.from({ length: atOnce }, () =>
      work().catch((cause: unknown) => {
        isBroken = true;
        throw cause;
      }),
    );
    const tried = Promise.all(workers).then(() => {});
    const done = Promise.allSettled(workers).then(async () => {
      await Promise.all(undecided);
      await write();
      return counts;
    });
    return { tried, done };
  };
}

/** Bounds the number of waiting targets. Unlike with a concurrency limiter, a target enters only once it has to wait. */
function createParking(sizeMax: number) {
  let count = 0;
  let left = Promise.withResolvers<void>();
  return {
    /** Resolves when there is room. */
    async room(): Promise<void> {
      while (count >= sizeMax) await left.promise;
    },
    /** Takes a place. Returns the function that frees it. */
    enter(): () => void {
      count++;
      return () => {
        count--;
        left.resolve();
        left = Promise.withResolvers<void>();
      };
    },
  };
}

const shortened = (text: string): string =>
  text.length <= LOG_TEXT_LENGTH_MAX ? text : `${text.slice(0, LOG_TEXT_LENGTH_MAX - 1)}…`;
