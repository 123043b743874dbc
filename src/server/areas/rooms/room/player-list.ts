import type { Clock, Millis } from "../../../../kernel/clock.ts";
import { PLAYERS_INTERVAL_MS, PLAYERS_LISTED_MAX, PLAYERS_SHARE, SEND_MS, SENT_CHARS_PER_MS } from "../limits.ts";
import { playersMessage } from "../messages.ts";
import type { RoomConnection } from "../types.ts";
import type { Members } from "./members.ts";
import type { RoomMeter } from "./room-meter.ts";

/**
 * Sends the list of players to the connections that requested it, whenever it changes: at most every PLAYERS_INTERVAL_MS, and
 * less often in a room where many players get a long list, so that it takes a small share of the room's time. [RM220]
 */
export class PlayerList {
  readonly #members: Members;
  readonly #clock: Clock;
  readonly #meter: RoomMeter;
  /** Last text sent to each connection; null when none was yet. */
  readonly #listeners = new Map<RoomConnection, string | null>();
  #cancel: (() => void) | null = null;
  #sentAt: Millis = 0;
  #pauseMs: Millis = 0;

  constructor(deps: { members: Members; clock: Clock; meter: RoomMeter }) {
    this.#members = deps.members;
    this.#clock = deps.clock;
    this.#meter = deps.meter;
  }

  /** Sends the list to a connection and adds it to the listeners, even when it has requested the list before. */
  add(connection: RoomConnection): void {
    this.#listeners.set(connection, null);
    this.changed();
  }

  forget(connection: RoomConnection): void {
    this.#listeners.delete(connection);
  }

  /** Schedules a list. Call it when the players may have changed. */
  changed(): void {
    if (this.#listeners.size === 0 || this.#cancel !== null) return;
    // Longer than the pause when the clock was set back.
    const waitMs = Math.min(this.#pauseMs, this.#sentAt + this.#pauseMs - this.#clock.now());
    this.#cancel = this.#clock.after(Math.max(0, waitMs), () => this.#send());
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = null;
    this.#listeners.clear();
  }

  #send(): void {
    this.#cancel = null;
    this.#meter.measure(() => {
      const text = this.#text();
      let costMs = 0;
      for (const [connection, sent] of this.#listeners) {
        if (sent === text) continue;
        this.#listeners.set(connection, text);
        const ms = SEND_MS + text.length / SENT_CHARS_PER_MS;
        this.#meter.bill(ms);
        costMs += ms;
        connection.send(text);
      }
      this.#sentAt = this.#clock.now();
      this.#pauseMs = Math.max(PLAYERS_INTERVAL_MS, costMs / PLAYERS_SHARE);
    });
  }

  #text(): string {
    const players = [];
    for (const member of this.#members.all()) {
      if (players.length === PLAYERS_LISTED_MAX) break;
      const { userId, connectionId, role } = this.#members.playerOf(member);
      players.push({ userId, connectionId, role });
    }
    return playersMessage(players, this.#members.size);
  }
}
