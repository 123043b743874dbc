import type { DatabaseFile, SqlValue, Transaction } from "../../db/index.ts";
import type { LatencyRow, RequestRow, TrackedEvent } from "./model.ts";

const INSERT_EVENT = "INSERT INTO events (timestamp, name, user_id, properties) VALUES (?1, ?2, ?3, ?4)";
const INSERT_REQUESTS = `INSERT INTO requests (second, endpoint, status, user_id, requests, duration_us)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6)
  ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, duration_us = duration_us + excluded.duration_us`;
const INSERT_ENDPOINT = `INSERT INTO endpoints (method, route, category, target) VALUES (?1, ?2, ?3, ?4)
  ON CONFLICT (method, route, target) DO UPDATE SET category = excluded.category RETURNING id`;

const INSERT_LATENCIES = `INSERT INTO latencies (minute, endpoint, bucket, requests) VALUES (?1, ?2, ?3, ?4)
  ON CONFLICT DO UPDATE SET requests = requests + excluded.requests`;

/** Columns that identify an endpoint. */
type Asked = Pick<RequestRow, "method" | "route" | "category" | "target">;

/** Writes events, request rows and histograms. */
export type AnalyticsStore = ReturnType<typeof createAnalyticsStore>;

export function createAnalyticsStore(file: DatabaseFile) {
  // Bounded by the number of endpoints. An id is kept only after its transaction has been committed.
  const endpointIds = new Map<string, number>();

  const endpointId = (tx: Transaction, row: Asked, added: Map<string, number>): number => {
    const key = `${row.method} ${row.route} ${row.target}`;
    const known = endpointIds.get(key) ?? added.get(key);
    if (known !== undefined) return known;
    const { id } = tx.query<{ id: number }>(INSERT_ENDPOINT).get(row.method, row.route, row.category, row.target) ?? {
      id: 0,
    };
    added.set(key, id);
    return id;
  };

  const insertRows = async <Row extends Asked>(
    sql: string,
    rows: readonly Row[],
    valuesOf: (row: Row, endpoint: number) => SqlValue[],
  ): Promise<void> => {
    const added = await file.write((tx) => {
      const fresh = new Map<string, number>();
      const insert = tx.query(sql);
      for (const row of rows) insert.run(...valuesOf(row, endpointId(tx, row, fresh)));
      return fresh;
    });
    for (const [key, id] of added) endpointIds.set(key, id);
  };

  return {
    async insertEvents(events: readonly TrackedEvent[]): Promise<void> {
      await file.write((tx) => {
        const insert = tx.query(INSERT_EVENT);
        for (const { timestamp, name, userId, properties } of events) insert.run(timestamp, name, userId, properties);
        return null;
      });
    },
    /** Inserts rows of the request log, or adds to existing ones. */
    insertRequests: (rows: readonly RequestRow[]): Promise<void> =>
      insertRows(INSERT_REQUESTS, rows, (row, endpoint) => {
        const { second, status, userId, requests, durationUs } = row;
        return [second, endpoint, status, userId, requests, durationUs];
      }),
    /** Inserts rows of histograms, or adds to existing ones. */
    insertLatencies: (rows: readonly LatencyRow[]): Promise<void> =>
      insertRows(INSERT_LATENCIES, rows, ({ minute, bucket, requests }, endpoint) => [
        minute,
        endpoint,
        bucket,
        requests,
      ]),
  };
}
