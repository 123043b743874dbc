import type { Clock, Millis } from "../../../../kernel/clock.ts";
import type { Scheduler } from "../../../../kernel/time/scheduler.ts";
import type { TableAddress } from "../../../access/table-door.ts";
import type { Change } from "../../../db/index.ts";
import { RESYNC_INTERVAL_MS, RESYNC_SUBSCRIPTIONS } from "../limits.ts";

/** A subscription to a view. */
interface Follower {
  /** Tells the client that the records of the view may be others. */
  resync(): void;
}

/** A view with subscriptions. */
interface Followed {
  readonly sources: readonly string[];
  readonly followers: Set<Follower>;
  /** Time at which its subscriptions were last told. The first change is told at once. */
  toldAt: Millis;
  /** Cancels the next telling; null when none is due. */
  cancel: (() => void) | null;
}

/**
 * Notifies subscriptions of views when a table that the view reads has changed. A view has no changes of its own: which of its records are
 * others is known only to its SQL. [TB869]
 */
export class ViewFollowers {
  readonly #clock: Clock;
  readonly #turns: Pick<Scheduler, "run">;
  /** Views by file, then by name. */
  readonly #files = new Map<string, Map<string, Followed>>();

  constructor(clock: Clock, turns: Pick<Scheduler, "run">) {
    this.#clock = clock;
    this.#turns = turns;
  }

  add(address: TableAddress, sources: readonly string[], follower: Follower): void {
    const views = this.#files.get(keyOf(address)) ?? new Map<string, Followed>();
    this.#files.set(keyOf(address), views);
    const view = views.get(address.table) ?? {
      sources,
      followers: new Set<Follower>(),
      toldAt: Number.NEGATIVE_INFINITY,
      cancel: null,
    };
    views.set(address.table, view);
    view.followers.add(follower);
  }

  remove(address: TableAddress, follower: Follower): void {
    const views = this.#files.get(keyOf(address));
    const view = views?.get(address.table);
    if (views === undefined || view?.followers.delete(follower) !== true || view.followers.size > 0) return;
    view.cancel?.();
    views.delete(address.table);
    if (views.size === 0) this.#files.delete(keyOf(address));
  }

  /** Tells a subscription at once what all of its view wait for. */
  flush(address: TableAddress, follower: Follower): void {
    const view = this.#files.get(keyOf(address))?.get(address.table);
    if (view?.cancel != null) follower.resync();
  }

  /** Takes committed changes of a file. */
  changed(file: Omit<TableAddress, "table">, groups: readonly (readonly Change[])[]): void {
    const views = this.#files.get(keyOf(file));
    if (views === undefined) return;
    const tables = new Set(groups.flatMap((changes) => changes.map(({ table }) => table)));
    for (const view of views.values()) if (view.sources.some((name) => tables.has(name))) this.#tellSoon(view);
  }

  stop(): void {
    for (const views of this.#files.values()) for (const { cancel } of views.values()) cancel?.();
    this.#files.clear();
  }

  /** Tells the subscriptions at once, or later where they have just been told: each client reads its list again. */
  #tellSoon(view: Followed): void {
    if (view.cancel !== null) return;
    const now = this.#clock.now();
    // The clock may have been set back.
    view.toldAt = Math.min(view.toldAt, now);
    const crowd = Math.max(1, view.followers.size / RESYNC_SUBSCRIPTIONS);
    const waitMs = Math.max(0, view.toldAt + RESYNC_INTERVAL_MS * crowd - now);
    if (waitMs === 0) this.#tell(view);
    else view.cancel = this.#clock.after(waitMs, () => this.#tell(view));
  }

  #tell(view: Followed): void {
    view.cancel = null;
    view.toldAt = this.#clock.now();
    const followers = [...view.followers];
    const steps = function* (): Generator<void, void> {
      for (const follower of followers) {
        follower.resync();
        yield;
      }
    };
    void this.#turns.run(steps());
  }
}

const keyOf = ({ namespace, instanceId }: Omit<TableAddress, "table">): string => `${namespace}/${instanceId ?? ""}`;
