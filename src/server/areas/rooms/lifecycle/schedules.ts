import type { Clock, Millis } from "../../../../kernel/clock.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { startSweeping } from "../../../../kernel/time/sweeping.ts";
import { SWEEP_INTERVAL_MS, SWEEP_ROWS_MAX, WAKE_RETRY_MS, WAKE_ROOMS_MAX } from "../limits.ts";
import type { ExpiringRoom, RoomStore, TimedRoom } from "./store.ts";

interface WakeDeps {
  store: Pick<RoomStore, "timed">;
  /** Declared namespaces. Rooms of others are not woken. */
  namespaces: readonly string[];
  clock: Clock;
  /** Whether the room is in memory. If so, it fires its timers itself, and its row in the file is outdated. */
  isInMemory: (room: TimedRoom) => boolean;
  /** Wakes a room; false when there is no place for it in memory. */
  wake: (room: TimedRoom) => boolean;
  onFailure: (cause: unknown) => void;
}

/**
 * Wakes hibernating rooms for their timers: calls `wake` for each room whose first timer is due. One clock timer serves all
 * rooms; a pass reads the due rooms from the file, a page at a time, and tries each of them once.
 */
export class WakeSchedule {
  readonly #deps: WakeDeps;
  #expectedAt = Number.POSITIVE_INFINITY;
  #isStopped = false;
  #cancel: (() => void) | null = null;
  /** Pass in progress; null when there is none. */
  #pass: Generator<undefined> | null = null;

  constructor(deps: WakeDeps) {
    this.#deps = deps;
  }

  /** Schedules a pass for a room in the file whose timer is due at `dueAt`. */
  expect(dueAt: Millis): void {
    if (dueAt >= this.#expectedAt || this.#isStopped) return;
    this.#expectedAt = dueAt;
    // A running pass schedules the next one at its end.
    if (this.#pass === null) this.#schedule();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel?.();
  }

  #schedule(): void {
    this.#cancel?.();
    if (this.#expectedAt === Number.POSITIVE_INFINITY) return;
    const { clock } = this.#deps;
    this.#cancel = clock.after(Math.max(0, this.#expectedAt - clock.now()), () => {
      this.#expectedAt = Number.POSITIVE_INFINITY;
      this.#pass = this.#wakeDue();
      this.#step();
    });
  }

  #step(): void {
    const { clock, onFailure } = this.#deps;
    try {
      if (this.#pass?.next().done === false) {
        this.#cancel = clock.after(0, () => this.#step());
        return;
      }
      this.#pass = null;
    } catch (cause) {
      onFailure(cause);
      this.#pass = null;
      // Due rooms may be left.
      this.expect(clock.now() + WAKE_RETRY_MS);
    }
    if (!this.#isStopped) this.#schedule();
  }

  /** Wakes due rooms. Yields between pages, so that other work gets a turn. */
  *#wakeDue(): Generator<undefined> {
    for (const namespace of this.#deps.namespaces) {
      let position: TimedRoom | null = { dueAt: Number.MIN_SAFE_INTEGER, namespace, id: "" };
      while (position !== null) {
        position = this.#wakePage(position);
        if (position !== null) yield;
      }
    }
  }

  /** Wakes a page of due rooms. Returns where the next page begins; null after the last one. */
  #wakePage(after: TimedRoom): TimedRoom | null {
    const { store, clock, isInMemory, wake } = this.#deps;
    const page = store.timed(after, clock.now(), WAKE_ROOMS_MAX);
    for (const room of page) {
      if (isInMemory(room)) continue;
      if (room.dueAt > clock.now()) {
        this.expect(room.dueAt);
        return null;
      }
      if (!wake(room)) this.expect(clock.now() + WAKE_RETRY_MS);
    }
    return page.length < WAKE_ROOMS_MAX ? null : (page.at(-1) ?? null);
  }
}

/**
 * Deletes expired rooms, a bounded number at a time. Renews the expiry of rooms with players first: their time to live starts
 * when the last player leaves. [RM37]
 */
export function startSweep(deps: {
  store: Pick<RoomStore, "renew" | "removeExpired">;
  /** Returns rooms with players, each with the expiry that a save would now give it. */
  occupied(): readonly ExpiringRoom[];
  clock: Clock;
  logger: Logger;
}): () => Promise<void> {
  const { store, clock, logger } = deps;
  /** Rooms still to renew in this round; null when the next step starts a round. */
  let toRenew: ExpiringRoom[] | null = null;
  return startSweeping({
    clock,
    intervalMs: SWEEP_INTERVAL_MS,
    pauseMs: 0,
    async sweep() {
      toRenew ??= [...deps.occupied()];
      if (toRenew.length > 0) {
        await store.renew(toRenew.splice(-SWEEP_ROWS_MAX));
        return true;
      }
      const isMore = await store.removeExpired(clock.now());
      if (!isMore) toRenew = null;
      return isMore;
    },
    onFailure(cause) {
      toRenew = null;
      logger.error("rooms: removing expired rooms failed", { cause });
    },
  });
}
