import type { Millis } from "../../../../kernel/clock.ts";
import { frozenJson } from "../../../../kernel/json/frozen.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import { untilBytes } from "../../../../kernel/time/sweeping.ts";
import type { Player } from "../../../config/types.ts";
import type { DatabaseFile } from "../../../db/index.ts";
import { SWEEP_BYTES, SWEEP_ROWS_MAX } from "../limits.ts";
import { jsonText } from "../messages.ts";
import type { PresentPlayer, SavedRoom, StoredTimer } from "../types.ts";

const LOAD = "SELECT * FROM rooms WHERE namespace = ?1 AND id = ?2 AND expires_at > ?3";
const METADATA = "SELECT metadata FROM rooms WHERE namespace = ?1 AND id = ?2 AND expires_at > ?3";
/** States that are too large are not read. */
const LOOK = `SELECT iif(octet_length(shared) <= ?4, shared, NULL) AS shared, shared_version AS sharedVersion,
  iif(octet_length(server) <= ?4, server, NULL) AS server, metadata, timers
  FROM rooms WHERE namespace = ?1 AND id = ?2 AND expires_at > ?3`;
const SAVE = `INSERT OR REPLACE INTO rooms (namespace, id, shared, shared_version, players, server, metadata, timers,
  present, saved_at, expires_at, next_timer_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)`;
const TIMERS = `SELECT namespace, id, next_timer_at AS dueAt FROM rooms
  WHERE namespace = ?1 AND next_timer_at IS NOT NULL AND (next_timer_at, id) > (?2, ?3) AND expires_at > ?4
  ORDER BY next_timer_at, id LIMIT ?5`;
const RENEW = "UPDATE rooms SET expires_at = ?3 WHERE namespace = ?1 AND id = ?2 AND expires_at < ?3";
const EXPIRED = "SELECT 1 FROM rooms WHERE expires_at <= ?1 LIMIT 1";
const SWEPT = `SELECT rowid, octet_length(shared) + octet_length(players) + octet_length(server) AS bytes FROM rooms
  WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ${SWEEP_ROWS_MAX}`;
const REMOVE = "DELETE FROM rooms WHERE rowid = ?1";

interface RoomRow {
  shared: string;
  shared_version: number;
  players: string;
  server: string;
  metadata: string;
  timers: string;
  present: string;
}

/** A room as it is saved. */
export interface RoomToSave extends SavedRoom {
  namespace: string;
  id: string;
  savedAt: Millis;
  expiresAt: Millis;
}

export interface TimedRoom {
  namespace: string;
  id: string;
  dueAt: Millis;
}

export interface ExpiringRoom {
  namespace: string;
  id: string;
  expiresAt: Millis;
}

interface SavedLook {
  shared: JsonObject | null;
  sharedVersion: number;
  server: JsonObject | null;
  metadata: JsonObject;
  timers: Record<string, StoredTimer>;
}

interface LookRow {
  shared: string | null;
  sharedVersion: number;
  server: string | null;
  metadata: string;
  timers: string;
}

/** The part of `rooms.db` that rooms use. It is a file of its own, so that saving many large states never delays sign-ins. */
export type RoomFile = Pick<DatabaseFile, "query" | "write">;

/** Rooms in the file. */
export class RoomStore {
  readonly #file: RoomFile;

  constructor(file: RoomFile) {
    this.#file = file;
  }

  /** Loads a room; null when it was never saved, or has expired. */
  load(namespace: string, id: string, now: Millis): SavedRoom | null {
    const row = this.#file.query<RoomRow>(LOAD).get(namespace, id, now);
    return row === null ? null : readRow(row);
  }

  /** Returns a room for an administrator; null as for `load`. States of more than `maxBytes` are null. */
  look(namespace: string, id: string, { now, maxBytes }: { now: Millis; maxBytes: number }): SavedLook | null {
    const row = this.#file.query<LookRow>(LOOK).get(namespace, id, now, maxBytes);
    if (row === null) return null;
    const { shared, server, sharedVersion } = row;
    return {
      shared: shared === null ? null : JSON.parse(shared),
      sharedVersion,
      server: server === null ? null : JSON.parse(server),
      metadata: JSON.parse(row.metadata),
      timers: JSON.parse(row.timers),
    };
  }

  /** Returns the metadata of a room; null as for `load`. */
  metadata(namespace: string, id: string, now: Millis): JsonObject | null {
    const row = this.#file.query<{ metadata: string }>(METADATA).get(namespace, id, now);
    return row === null ? null : JSON.parse(row.metadata);
  }

  async save(room: RoomToSave): Promise<void> {
    const nextTimerAt = Object.values(room.timers).reduce<Millis | null>((next, { dueAt }) => {
      return next === null ? dueAt : Math.min(next, dueAt);
    }, null);
    // Built before the write starts: the room may change while the write waits.
    const values = [
      room.namespace,
      room.id,
      room.shared,
      room.sharedVersion,
      room.players,
      room.server,
      jsonText(room.metadata),
      jsonText(room.timers),
      jsonText(room.present.map(({ player, sessionId }) => ({ ...player, sessionId }))),
      room.savedAt,
      room.expiresAt,
      nextTimerAt,
    ];
    await this.#file.write((tx) => {
      tx.query(SAVE).run(...values);
    });
  }

  /**
   * Lists rooms of one namespace with a timer after `after`, sorted by the time of their first timer. Expired rooms are left out.
   */
  timed(after: TimedRoom, now: Millis, limit: number): TimedRoom[] {
    return this.#file.query<TimedRoom>(TIMERS).all(after.namespace, after.dueAt, after.id, now, limit);
  }

  /** Extends the expiry of rooms in the file. Never shortens it. */
  async renew(rooms: readonly ExpiringRoom[]): Promise<void> {
    await this.#file.write((tx) => {
      const renew = tx.query(RENEW);
      for (const { namespace, id, expiresAt } of rooms) renew.run(namespace, id, expiresAt);
      return null;
    });
  }

  /** Deletes some expired rooms, bounded by number and size; resolves to whether there may be more. */
  async removeExpired(now: Millis): Promise<boolean> {
    // Most sweeps find no expired room and need no transaction.
    if (this.#file.query(EXPIRED).get(now) === null) return false;
    return this.#file.write((tx) => {
      const swept = tx.query<{ rowid: number; bytes: number }>(SWEPT).all(now);
      const step = untilBytes(swept, SWEEP_BYTES);
      for (const { rowid } of step) tx.query(REMOVE).run(rowid);
      return step.length < swept.length || swept.length === SWEEP_ROWS_MAX;
    });
  }
}

/** Parses a player. Rows of earlier versions have no session: the user then stays as saved. */
function readPresent({ sessionId = "", ...player }: Player & { sessionId?: string }): PresentPlayer {
  return { player: frozenJson(player), sessionId };
}

/** Parses a row written by `save`. */
function readRow(row: RoomRow): SavedRoom {
  return {
    shared: row.shared,
    sharedVersion: row.shared_version,
    players: row.players,
    server: row.server,
    metadata: JSON.parse(row.metadata),
    timers: JSON.parse(row.timers),
    present: JSON.parse(row.present).map(readPresent),
  };
}
