import type { Clock, Millis } from "../../../../kernel/clock.ts";
import { WAKE_RETRY_MS, WAKE_ROOMS_MAX } from "../limits.ts";
import type { RoomStore, TimedRoom } from "./store.ts";

export interface WakeSchedule {
  /** A room in the file has a timer that is due then. */
  expect(dueAt: Millis): void;
  stop(): void;
}

/**
 * Wakes hibernating rooms for their timers: `wake` is called for each room whose first timer is due. One clock timer serves
 * all rooms; a pass reads the rooms that are due from the file, a page at a time, and tries each of them once.
 */
export function createWakeSchedule(deps: {
  store: RoomStore;
  /** The declared namespaces. Rooms of others are not woken. */
  namespaces: readonly string[];
  clock: Clock;
  /** A room in memory fires its timers itself, and its row in the file is outdated. */
  isInMemory: (room: TimedRoom) => boolean;
  /** false: there is no place for it in memory. */
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
    // The end of the pass schedules it.
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
      pass = null;
    } catch (cause) {
      deps.onFailure(cause);
      pass = null;
      // Rooms that are due may be left.
      expect(clock.now() + WAKE_RETRY_MS);
    }
    if (!isStopped) schedule();
  };

  /** Yields between pages, so that other work gets a turn. */
  function* wakeDue(): Generator<undefined> {
    for (const namespace of deps.namespaces) {
      let position: TimedRoom | null = { dueAt: Number.MIN_SAFE_INTEGER, namespace, id: "" };
      while (position !== null) {
        position = wakePage(position);
        if (position !== null) yield;
      }
    }
  }

  /** Returns where the next page begins; null after the last room that is due. */
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
