import type { Database } from "bun:sqlite";
import type { DatabaseFile, Transaction } from "../db/index.ts";
import type { RequestRow, TrackedEvent } from "./types.ts";

/**
 * `<data>/analytics.db`. Events and requests are appended in order of time, which is the cheapest for the server's process:
 * with indexes by name and by user, writing events took ten times as long. The only index covers everything that is counted,
 * so that only lists read rows. A day is identified by its first millisecond in UTC. `summarized`: rows from `since` up to
 * `until` are included in the summaries; they are being removed and are not counted any more. Both are 0 when all of them have
 * been removed: rows of such a day that arrive later [AN100] are rows like any others.
 */
export function migrateAnalytics(sqlite: Database): void {
  sqlite.run(`CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    timestamp INTEGER NOT NULL,     -- milliseconds since 1970
    name TEXT NOT NULL,
    user_id TEXT,                   -- NULL: no user
    properties TEXT NOT NULL        -- JSON
  ) STRICT`);
  sqlite.run("CREATE INDEX IF NOT EXISTS events_by_time ON events (timestamp, id, name, user_id)");
  sqlite.run(`CREATE TABLE IF NOT EXISTS endpoints (
    id INTEGER PRIMARY KEY,
    method TEXT NOT NULL,
    route TEXT NOT NULL,            -- the pattern of the path
    category TEXT NOT NULL,
    UNIQUE (method, route)
  ) STRICT`);
  sqlite.run(`CREATE TABLE IF NOT EXISTS requests (
    second INTEGER NOT NULL,        -- since 1970
    endpoint INTEGER NOT NULL,
    status INTEGER NOT NULL,
    user_id TEXT NOT NULL,          -- empty: not signed in
    requests INTEGER NOT NULL,
    duration_us INTEGER NOT NULL,   -- of all these requests together
    PRIMARY KEY (second, endpoint, status, user_id)
  ) STRICT, WITHOUT ROWID`);
  sqlite.run(`CREATE TABLE IF NOT EXISTS event_days (
    day INTEGER NOT NULL,
    name TEXT NOT NULL,             -- empty: all events of the day
    events INTEGER NOT NULL,
    users INTEGER NOT NULL,
    PRIMARY KEY (day, name)
  ) STRICT, WITHOUT ROWID`);
  sqlite.run(`CREATE TABLE IF NOT EXISTS request_days (
    day INTEGER NOT NULL,
    category TEXT NOT NULL,         -- empty: all requests of the day
    endpoint INTEGER NOT NULL,      -- 0: the whole category
    requests INTEGER NOT NULL,
    errors INTEGER NOT NULL,
    duration_us INTEGER NOT NULL,
    users INTEGER NOT NULL,
    PRIMARY KEY (day, category, endpoint)
  ) STRICT, WITHOUT ROWID`);
  sqlite.run(`CREATE TABLE IF NOT EXISTS summarized (
    kind TEXT PRIMARY KEY NOT NULL, -- events, requests
    until INTEGER NOT NULL,         -- milliseconds since 1970, as since
    since INTEGER NOT NULL DEFAULT 0
  ) STRICT, WITHOUT ROWID`);
  const columns = sqlite.query<{ name: string }, []>("PRAGMA table_info(summarized)").all();
  // Earlier versions had no `since`: the summaries included everything up to `until`.
  if (!columns.some(({ name }) => name === "since")) {
    sqlite.run("ALTER TABLE summarized ADD COLUMN since INTEGER NOT NULL DEFAULT 0");
  }
  sqlite.run("INSERT OR IGNORE INTO summarized (kind, until) VALUES ('events', 0), ('requests', 0)");
}

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
