import type { Millis } from "../../../../kernel/clock.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import type { StoredTimer } from "../types.ts";
import { type Delta, diffStates } from "./delta.ts";
import { adoptState, SYNCED, stateBytes, UNSYNCED } from "./state.ts";

/** A state that clients follow: the current one, and the one that the last delta announced. */
interface Followed {
  current: JsonObject;
  announced: JsonObject;
  version: number;
}

/** Changes of a successful handler; null or empty: unchanged. */
export interface StateChanges {
  shared: JsonObject | null;
  server: JsonObject | null;
  metadata: JsonObject | null;
  players: ReadonlyMap<string, JsonObject>;
}

export interface Deltas {
  shared: { delta: Delta; version: number } | null;
  players: readonly { userId: string; delta: Delta; version: number }[];
}

/** A snapshot of a room's states. They are immutable. */
export interface RoomSnapshot {
  shared: JsonObject;
  sharedVersion: number;
  players: readonly { userId: string; state: JsonObject; version: number }[];
  server: JsonObject;
  metadata: JsonObject;
  timers: ReadonlyMap<string, StoredTimer>;
}

const EMPTY_SYNCED: JsonObject = adoptState({}, SYNCED);
const EMPTY_UNSYNCED: JsonObject = adoptState({}, UNSYNCED);

/** Saved part of a room. States are immutable: a change replaces them. */
export class RoomState {
  readonly timers = new Map<string, StoredTimer>();
  #shared: Followed = { current: EMPTY_SYNCED, announced: EMPTY_SYNCED, version: 0 };
  readonly #players = new Map<string, Followed>();
  /** Users whose state may differ from the announced one. */
  readonly #changedPlayers = new Set<string>();
  #server: JsonObject = EMPTY_UNSYNCED;
  #metadata: JsonObject = EMPTY_UNSYNCED;
  #bytes = stateBytes(EMPTY_SYNCED, SYNCED);

  /** Returns the state of a snapshot, whose states must be adopted. */
  static restore(saved: RoomSnapshot): RoomState {
    const state = new RoomState();
    state.#shared = { current: saved.shared, announced: saved.shared, version: saved.sharedVersion };
    state.#bytes = stateBytes(saved.shared, SYNCED);
    for (const { userId, state: current, version } of saved.players) {
      state.#players.set(userId, { current, announced: current, version });
      state.#bytes += stateBytes(current, SYNCED);
    }
    state.#server = saved.server;
    state.#metadata = saved.metadata;
    for (const [name, timer] of saved.timers) state.timers.set(name, timer);
    return state;
  }

  get shared(): JsonObject {
    return this.#shared.current;
  }

  get server(): JsonObject {
    return this.#server;
  }

  get metadata(): JsonObject {
    return this.#metadata;
  }

  /** Bytes of JSON of the shared state and all player states. [RM24] */
  get bytes(): number {
    return this.#bytes;
  }

  get sharedVersion(): number {
    return this.#shared.version;
  }

  player(userId: string): JsonObject {
    return this.#players.get(userId)?.current ?? EMPTY_SYNCED;
  }

  playerVersion(userId: string): number {
    return this.#players.get(userId)?.version ?? 0;
  }

  /** Returns `bytes` as it would be after these changes. */
  bytesAfter(changes: StateChanges): number {
    let bytes = this.#bytes;
    if (changes.shared !== null) bytes += stateBytes(changes.shared, SYNCED) - stateBytes(this.#shared.current, SYNCED);
    for (const [userId, next] of changes.players) {
      const before = this.#players.get(userId);
      bytes += stateBytes(next, SYNCED) - (before === undefined ? 0 : stateBytes(before.current, SYNCED));
    }
    return bytes;
  }

  /** Applies changes. Returns whether anything has changed. */
  commit(changes: StateChanges): boolean {
    const bytes = this.bytesAfter(changes);
    let isChanged = false;
    if (changes.shared !== null && changes.shared !== this.#shared.current) {
      this.#shared.current = changes.shared;
      isChanged = true;
    }
    for (const [userId, next] of changes.players) {
      const before = this.#players.get(userId);
      if (before?.current === next) continue;
      this.#players.set(userId, { announced: EMPTY_SYNCED, version: 0, ...before, current: next });
      this.#changedPlayers.add(userId);
      isChanged = true;
    }
    if (changes.server !== null) this.#server = changes.server;
    if (changes.metadata !== null) this.#metadata = changes.metadata;
    this.#bytes = bytes;
    return isChanged || changes.server !== null || changes.metadata !== null;
  }

  /** Whether there may be changes to announce. */
  get hasUnannounced(): boolean {
    return this.#shared.current !== this.#shared.announced || this.#changedPlayers.size > 0;
  }

  /** Returns the changes since the last call. A version increases by one with each delta. */
  announce(): Deltas {
    const shared = announce(this.#shared);
    const players: { userId: string; delta: Delta; version: number }[] = [];
    for (const userId of this.#changedPlayers) {
      const player = this.#players.get(userId);
      const delta = player === undefined ? null : announce(player);
      if (delta !== null) players.push({ userId, ...delta });
    }
    this.#changedPlayers.clear();
    return { shared, players };
  }

  /** Returns the states to save. Unannounced changes count as announced, since a restored room sends a `sync`. */
  snapshot(): RoomSnapshot {
    return {
      shared: this.#shared.current,
      sharedVersion: versionWhenAnnounced(this.#shared),
      players: Array.from(this.#players, ([userId, player]) => {
        return { userId, state: player.current, version: versionWhenAnnounced(player) };
      }),
      server: this.#server,
      metadata: this.#metadata,
      timers: new Map(this.timers),
    };
  }

  /** Returns the timer that is due first; null without timers. */
  nextTimer(): { name: string; dueAt: Millis } | null {
    let next: { name: string; dueAt: Millis } | null = null;
    for (const [name, { dueAt }] of this.timers) if (next === null || dueAt < next.dueAt) next = { name, dueAt };
    return next;
  }
}

function announce(followed: Followed): { delta: Delta; version: number } | null {
  const delta = diffStates(followed.announced, followed.current);
  followed.announced = followed.current;
  if (delta === null) return null;
  followed.version++;
  return { delta, version: followed.version };
}

const versionWhenAnnounced = ({ current, announced, version }: Followed): number =>
  current === announced ? version : version + 1;
