import { AppError } from "../../../../kernel/errors.ts";
import { WAITING_EVENTS_MAX, WAITING_EVENTS_MAX_BYTES } from "../limits.ts";
import type { TrackedEvent } from "../types.ts";

/** Accepted events that are not on disk yet; bounded in number and bytes. */
export interface WaitingEvents {
  /** Adds all or none. Errors: 503 above the bounds. */
  add(events: readonly TrackedEvent[]): void;
  /** Removes and returns all. */
  take(): TrackedEvent[];
  /** Adds events again, above the bounds if necessary, as they have been accepted before. */
  putBack(events: readonly TrackedEvent[]): void;
  readonly count: number;
}

const RETRY_AFTER = { "retry-after": "1" };

export function createWaitingEvents(): WaitingEvents {
  let waiting: TrackedEvent[] = [];
  let bytes = 0;
  const put = (events: readonly TrackedEvent[]): void => {
    for (const event of events) {
      waiting.push(event);
      bytes += sizeOf(event);
    }
  };
  return {
    add(events) {
      const addedBytes = events.reduce((sum, event) => sum + sizeOf(event), 0);
      const isFull = waiting.length + events.length > WAITING_EVENTS_MAX;
      if (isFull || bytes + addedBytes > WAITING_EVENTS_MAX_BYTES) {
        throw new AppError(503, "Too many events are waiting to be written", { headers: RETRY_AFTER });
      }
      put(events);
    },
    take() {
      const taken = waiting;
      waiting = [];
      bytes = 0;
      return taken;
    },
    putBack: put,
    get count() {
      return waiting.length;
    },
  };
}

/** Strings take at most two bytes per character in memory; everything else is small in comparison. */
const sizeOf = ({ name, userId, properties }: TrackedEvent): number =>
  2 * (name.length + (userId?.length ?? 0) + properties.length) + 64;
