import type { Clock } from "../kernel/clock.ts";
import { DELTA_INTERVAL_MS } from "./limits.ts";
import type { Members } from "./members.ts";
import { playerDelta, sharedDelta, syncMessage } from "./messages.ts";
import type { RoomState } from "./room-state.ts";
import type { RoomConnection } from "./types.ts";

/**
 * Tells connections of changes: deltas at most every DELTA_INTERVAL_MS, and a `sync` at a moment when nothing is
 * unannounced, so that a version always stands for one state. A connection that waits for its `sync` gets no delta before.
 */
export class Announcer {
  readonly #members: Members;
  readonly #clock: Clock;
  readonly #awaitingSync = new Set<RoomConnection>();
  #cancelFlush: (() => void) | null = null;
  #flushedAt = Number.NEGATIVE_INFINITY;

  constructor(members: Members, clock: Clock) {
    this.#members = members;
    this.#clock = clock;
  }

  /** Something may have changed. */
  schedule(state: RoomState): void {
    if (this.#cancelFlush !== null || !state.hasUnannounced) return;
    this.#cancelFlush = this.#clock.after(DELTA_INTERVAL_MS, () => this.flush(state));
  }

  /** The connection is held until its `sync`: at once, unless that would send the others a delta too early. */
  requestSync(state: RoomState, connection: RoomConnection): void {
    this.#awaitingSync.add(connection);
    const isEarly = this.#clock.now() - this.#flushedAt < DELTA_INTERVAL_MS;
    if (state.hasUnannounced && isEarly) this.schedule(state);
    else this.flush(state);
  }

  forget(connection: RoomConnection): void {
    this.#awaitingSync.delete(connection);
  }

  stop(): void {
    this.#cancelFlush?.();
    this.#cancelFlush = null;
    this.#awaitingSync.clear();
  }

  flush(state: RoomState): void {
    this.#cancelFlush?.();
    this.#cancelFlush = null;
    if (state.hasUnannounced) this.#sendDeltas(state);
    if (this.#awaitingSync.size === 0) return;
    const sharedText = JSON.stringify(state.shared);
    for (const connection of this.#awaitingSync) {
      const { userId } = connection;
      connection.release(
        syncMessage(sharedText, state.sharedVersion, state.player(userId), state.playerVersion(userId)),
      );
    }
    this.#awaitingSync.clear();
  }

  #sendDeltas(state: RoomState): void {
    const { shared, players } = state.announce();
    if (shared === null && players.length === 0) return;
    this.#flushedAt = this.#clock.now();
    if (shared !== null) {
      const text = sharedDelta(shared.delta, shared.version);
      for (const connection of this.#members.connections()) this.#send(connection, text);
    }
    for (const { userId, delta, version } of players) {
      const connections = this.#members.get(userId)?.connections;
      if (connections === undefined || connections.size === 0) continue;
      const text = playerDelta(delta, version);
      for (const connection of connections) this.#send(connection, text);
    }
  }

  #send(connection: RoomConnection, text: string): void {
    if (!this.#awaitingSync.has(connection)) connection.send(text);
  }
}
