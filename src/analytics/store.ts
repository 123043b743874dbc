import type { DatabaseFile, Transaction } from "../db/index.ts";
import type { RequestRow, TrackedEvent } from "./types.ts";

const INSERT_EVENT = "INSERT INTO events (timestamp, name, user_id, properties) VALUES (?1, ?2, ?3, ?4)";
const INSERT_REQUESTS = `INSERT INTO requests (second, endpoint, status, user_id, requests, duration_us)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6)
  ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, duration_us = duration_us + excluded.duration_us`;
const INSERT_ENDPOINT = `INSERT INTO endpoints (method, route, category) VALUES (?1, ?2, ?3)
  ON CONFLICT (method, route) DO UPDATE SET category = excluded.category RETURNING id`;

/** Writes events and request rows. */
export interface AnalyticsStore {
  insertEvents(events: readonly TrackedEvent[]): Promise<void>;
  /** Adds to existing rows. */
  insertRequests(rows: readonly RequestRow[]): Promise<void>;
}

export function createAnalyticsStore(file: DatabaseFile): AnalyticsStore {
  // Bounded by the number of endpoints. An id is kept only after its transaction has been committed.
  const endpointIds = new Map<string, number>();

  const endpointId = (tx: Transaction, row: RequestRow, added: Map<string, number>): number => {
    const key = `${row.method} ${row.route}`;
    const known = endpointIds.get(key) ?? added.get(key);
    if (known !== undefined) return known;
    const { id } = tx.query<{ id: number }>(INSERT_ENDPOINT).get(row.method, row.route, row.category) ?? { id: 0 };
    added.set(key, id);
    return id;
  };

  return {
    async insertEvents(events) {
      await file.write((tx) => {
        const insert = tx.query(INSERT_EVENT);
        for (const { timestamp, name, userId, properties } of events) insert.run(timestamp, name, userId, properties);
        return null;
      });
    },
    async insertRequests(rows) {
      const added = await file.write((tx) => {
        const fresh = new Map<string, number>();
        const insert = tx.query(INSERT_REQUESTS);
        for (const row of rows) {
          const { second, status, userId, requests, durationUs } = row;
          insert.run(second, endpointId(tx, row, fresh), status, userId, requests, durationUs);
        }
        return fresh;
      });
      for (const [key, id] of added) endpointIds.set(key, id);
    },
  };
}
