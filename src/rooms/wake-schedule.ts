import type { Clock, Millis } from "../kernel/clock.ts";
import { TIMER_DELAY_MAX_MS, WAKE_ROOMS_MAX } from "./limits.ts";
import type { RoomStore, TimedRoom } from "./store.ts";

export interface WakeSchedule {
  /** A room has left memory, or is in the file since an earlier run, with a timer due then. */
  expect(dueAt: Millis): void;
  stop(): void;
}

/**
 * Timers go on while their room hibernates: `wake` is called for each room whose first timer is due. One clock timer
 * serves all rooms; which ones are due is asked of the file.
 */
export function createWakeSchedule(deps: {
  store: RoomStore;
  clock: Clock;
  /** A room in memory minds its timers itself, and what the file says of them is old. */
  isInMemory: (room: TimedRoom) => boolean;
  wake: (room: TimedRoom) => void;
  onFailure: (cause: unknown) => void;
}): WakeSchedule {
  const { store, clock } = deps;
  let expectedAt = Number.POSITIVE_INFINITY;
  let cancel: (() => void) | null = null;

  const expect = (dueAt: Millis): void => {
    if (dueAt >= expectedAt) return;
    cancel?.();
    expectedAt = dueAt;
    const delayMs = Math.min(TIMER_DELAY_MAX_MS, Math.max(0, dueAt - clock.now()));
    cancel = clock.after(delayMs, () => {
      expectedAt = Number.POSITIVE_INFINITY;
      try {
        wakeDue();
      } catch (cause) {
        deps.onFailure(cause);
      }
    });
  };

  const wakeDue = (): void => {
    let position: TimedRoom = { dueAt: Number.MIN_SAFE_INTEGER, namespace: "", id: "" };
    let wokenCount = 0;
    for (;;) {
      const page = store.timed(position, WAKE_ROOMS_MAX);
      for (const room of page) {
        position = room;
        if (deps.isInMemory(room)) continue;
        // What is due and does not fit into this turn comes in the next one.
        if (room.dueAt > clock.now() || wokenCount === WAKE_ROOMS_MAX) {
          expect(room.dueAt);
          return;
        }
        wokenCount++;
        deps.wake(room);
      }
      if (page.length < WAKE_ROOMS_MAX) return;
    }
  };

  return {
    expect,
    stop() {
      cancel?.();
      expectedAt = Number.NEGATIVE_INFINITY;
    },
  };
}
