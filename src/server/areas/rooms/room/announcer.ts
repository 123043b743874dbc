import type { Clock } from "../../../../kernel/clock.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import { chain } from "../../../../kernel/maybe-promise.ts";
import { DELTA_INTERVAL_MS, SENT_CHARS_PER_MS } from "../limits.ts";
import { playerDelta, sharedDelta, syncMessage, syncPart } from "../messages.ts";
import type { RoomState } from "../state/room-state.ts";
import type { StateTexts } from "../state/steps.ts";
import type { RoomConnection } from "../types.ts";
import type { Members } from "./members.ts";
import type { RoomMeter } from "./room-meter.ts";

/** The player's part of a `sync`. */
interface PlayerPart {
  state: JsonObject;
  version: number;
}

/** `sync` messages in the making, all of the same moment. Its states are immutable. */
interface Round {
  shared: JsonObject;
  sharedVersion: number;
  players: Map<RoomConnection, PlayerPart>;
}

/**
 * Sends changes to connections: deltas at most every DELTA_INTERVAL_MS, and `sync` messages. A `sync` is a snapshot at a moment
 * when all changes have been announced, so that a version always means one state. A connection gets no delta from before that
 * moment, and all deltas after it. One round of `sync` messages is made at a time; connections that request theirs meanwhile
 * share the next round.
 */
export class Announcer {
  readonly #members: Members;
  readonly #clock: Clock;
  readonly #meter: RoomMeter;
  readonly #texts: StateTexts;
  readonly #awaitingSync = new Set<RoomConnection>();
  /** Round in progress; null when no `sync` is being made. */
  #round: Round | null = null;
  #cancelFlush: (() => void) | null = null;
  #flushedAt = Number.NEGATIVE_INFINITY;

  constructor(deps: { members: Members; clock: Clock; meter: RoomMeter; texts: StateTexts }) {
    this.#members = deps.members;
    this.#clock = deps.clock;
    this.#meter = deps.meter;
    this.#texts = deps.texts;
  }

  /** Whether connections wait for a `sync` in the making. */
  get isMakingSync(): boolean {
    return this.#round !== null && this.#round.players.size > 0;
  }

  /** Schedules a delta. Call it after a change. */
  schedule(state: RoomState): void {
    if (this.#cancelFlush !== null || !state.hasUnannounced) return;
    this.#cancelFlush = this.#clock.after(DELTA_INTERVAL_MS, () => this.flush(state));
  }

  /**
   * Holds the connection until its `sync`, which is made at once, unless other connections would get a delta too early or an
   * earlier round is still in progress.
   */
  requestSync(state: RoomState, connection: RoomConnection): void {
    if (this.#round?.players.has(connection) === true) return;
    this.#awaitingSync.add(connection);
    this.#flushSoon(state);
  }

  forget(connection: RoomConnection): void {
    this.#awaitingSync.delete(connection);
    this.#round?.players.delete(connection);
  }

  stop(): void {
    this.#cancelFlush?.();
    this.#cancelFlush = null;
    this.#awaitingSync.clear();
    this.#round = null;
  }

  flush(state: RoomState): void {
    this.#cancelFlush?.();
    this.#cancelFlush = null;
    this.#meter.measure(() => {
      if (state.hasUnannounced) this.#sendDeltas(state);
      if (this.#awaitingSync.size > 0 && this.#round === null) this.#beginRound(state);
    });
  }

  #flushSoon(state: RoomState): void {
    const isEarly = this.#clock.now() - this.#flushedAt < DELTA_INTERVAL_MS;
    if (state.hasUnannounced && isEarly) this.schedule(state);
    else this.flush(state);
  }

  #beginRound(state: RoomState): void {
    const round: Round = { shared: state.shared, sharedVersion: state.sharedVersion, players: new Map() };
    for (const connection of this.#awaitingSync) {
      const { userId } = connection;
      round.players.set(connection, { state: state.player(userId), version: state.playerVersion(userId) });
    }
    this.#awaitingSync.clear();
    this.#round = round;
    const states = new Set([round.shared]);
    for (const player of round.players.values()) states.add(player.state);
    void chain(this.#texts.of(states, this.#meter), (texts) => this.#endRound(state, round, texts));
  }

  #endRound(state: RoomState, round: Round, texts: ReadonlyMap<JsonObject, string>): void {
    // The room has left memory meanwhile.
    if (this.#round !== round) return;
    this.#round = null;
    const shared = syncPart("shared", texts.get(round.shared), round.sharedVersion);
    /** Texts by the player's part. Players without a state share one. */
    const messages = new Map<string, string>();
    for (const [connection, player] of round.players) {
      const part = syncPart("player", texts.get(player.state), player.version);
      const message = messages.get(part) ?? syncMessage(shared, part);
      messages.set(part, message);
      this.#meter.bill(message.length / SENT_CHARS_PER_MS);
      connection.release(message);
    }
    if (this.#awaitingSync.size > 0) this.#flushSoon(state);
  }

  #sendDeltas(state: RoomState): void {
    const { shared, players } = state.announce();
    if (shared === null && players.length === 0) return;
    this.#flushedAt = this.#clock.now();
    if (shared !== null) {
      const text = sharedDelta(shared.delta, shared.version);
      for (const { connections } of this.#members.all()) {
        for (const connection of connections) this.#send(connection, text);
      }
    }
    for (const { userId, delta, version } of players) {
      const connections = this.#members.get(userId)?.connections;
      if (connections === undefined || connections.size === 0) continue;
      const text = playerDelta(delta, version);
      for (const connection of connections) this.#send(connection, text);
    }
  }

  #send(connection: RoomConnection, text: string): void {
    if (this.#awaitingSync.has(connection)) return;
    this.#meter.bill(text.length / SENT_CHARS_PER_MS);
    connection.sendDelta(text);
  }
}
