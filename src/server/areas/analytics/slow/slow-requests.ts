import type { DatabaseFile, ReadCaller } from "../../../db/index.ts";
import { SLOW_REQUESTS_MAX, SLOW_RETENTION_MS, SWEEP_STEP_ROWS } from "../limits.ts";
import type { SlowRequest } from "./slow-recorder.ts";

const INSERT = "INSERT INTO slow_requests (at, request) VALUES (?, ?)";
const PAGE = "SELECT id, request FROM slow_requests WHERE id < ?1 AND at >= ?2 ORDER BY id DESC LIMIT ?3";
const REMOVE = `DELETE FROM slow_requests WHERE id IN (SELECT id FROM slow_requests
  WHERE at < ?1 OR id <= (SELECT max(id) FROM slow_requests) - ?2 ORDER BY id LIMIT ?3)`;

/** The slow requests that are kept. */
export interface SlowRequests {
  insert(requests: readonly SlowRequest[]): Promise<void>;
  /** Newest first, before the one with the id `before`; null: from the newest. `next`: where the next page begins. */
  page(
    options: { limit: number; before: number | null; now: number },
    caller: ReadCaller,
  ): Promise<{ requests: SlowRequest[]; next: number | null }>;
  /** Removes what is too old or too much; resolves to whether there is more. */
  sweep(now: number): Promise<boolean>;
}

export function createSlowRequests(file: DatabaseFile): SlowRequests {
  return {
    async insert(requests) {
      await file.write((tx) => {
        const insert = tx.query(INSERT);
        for (const request of requests) insert.run(Date.parse(request.at), JSON.stringify(request));
        return null;
      });
    },
    async page({ limit, before, now }, caller) {
      const params = [before ?? Number.MAX_SAFE_INTEGER, now - SLOW_RETENTION_MS, limit + 1];
      // The cast follows the columns of the statement.
      const rows = (await file.read(PAGE, params, { caller })) as [id: number, request: string][];
      const hasMore = rows.length > limit;
      if (hasMore) rows.pop();
      // Written by `insert`.
      const requests = rows.map(([, request]) => JSON.parse(request) as SlowRequest);
      return { requests, next: hasMore ? (rows.at(-1)?.[0] ?? null) : null };
    },
    async sweep(now) {
      const removed = await file.write((tx) => {
        const { changes } = tx.query(REMOVE).run(now - SLOW_RETENTION_MS, SLOW_REQUESTS_MAX, SWEEP_STEP_ROWS);
        return changes;
      });
      return removed === SWEEP_STEP_ROWS;
    },
  };
}
