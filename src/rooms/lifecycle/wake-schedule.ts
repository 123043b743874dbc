import type { Clock, Millis } from "../../kernel/clock.ts";
import { WAKE_RETRY_MS, WAKE_ROOMS_MAX } from "../limits.ts";
import type { RoomStore, TimedRoom } from "./store.ts";

export interface WakeSchedule {
  /** A room has left memory, or is in the file since an earlier run, with a timer due then. */
  expect(dueAt: Millis): void;
  stop(): void;
}

/**
 * Timers go on while their room hibernates: `wake` is called for each room whose first timer is due. One clock timer
 * serves all rooms; which ones are due is asked of the file, a page at a time. Each pass asks for a room once, so that one
 * that cannot be woken keeps nobody busy.
 */
export function createWakeSchedule(deps: {
  store: RoomStore;
  /** Those that are declared: rooms of others stay in the file as they are. */
  namespaces: readonly string[];
  clock: Clock;
  /** A room in memory minds its timers itself, and what the file says of them is old. */
  isInMemory: (room: TimedRoom) => boolean;
  /** false: there is no place for it in memory now. */
  wake: (room: TimedRoom) => boolean;
  onFailure: (cause: unknown) => void;
}): WakeSchedule {
  const { store, clock } = deps;
  let expectedAt = Number.POSITIVE_INFINITY;
  let isStopped = false;
  let cancel: (() => void) | null = null;
  /** null: no pass is under way. */
  let pass: Generator<undefined> | null = null;

  const expect = (dueAt: Millis): void => {
    if (dueAt >= expectedAt || isStopped) return;
    expectedAt = dueAt;
    // The end of the pass looks after it.
    if (pass === null) schedule();
  };
  const schedule = (): void => {
    cancel?.();
    if (expectedAt === Number.POSITIVE_INFINITY) return;
    cancel = clock.after(Math.max(0, expectedAt - clock.now()), () => {
      expectedAt = Number.POSITIVE_INFINITY;
      pass = wakeDue();
      step();
    });
  };
  const step = (): void => {
    try {
      if (pass?.next().done === false) {
        cancel = clock.after(0, step);
        return;
      }
    } catch (cause) {
      deps.onFailure(cause);
    }
    pass = null;
    if (!isStopped) schedule();
  };

  /** Yields where others are to have a turn. */
  function* wakeDue(): Generator<undefined> {
    for (const namespace of deps.namespaces) {
      let position: TimedRoom | null = { dueAt: Number.MIN_SAFE_INTEGER, namespace, id: "" };
      while (position !== null) {
        position = wakePage(position);
        if (position !== null) yield;
      }
    }
  }

  /** Gives where the next page begins; null after the last room that is due. */
  const wakePage = (after: TimedRoom): TimedRoom | null => {
    const page = store.timed(after, clock.now(), WAKE_ROOMS_MAX);
    for (const room of page) {
      if (deps.isInMemory(room)) continue;
      if (room.dueAt > clock.now()) {
        expect(room.dueAt);
        return null;
      }
      if (!deps.wake(room)) expect(clock.now() + WAKE_RETRY_MS);
    }
    return page.length < WAKE_ROOMS_MAX ? null : (page.at(-1) ?? null);
  };

  return {
    expect,
    stop() {
      isStopped = true;
      cancel?.();
    },
  };
}
