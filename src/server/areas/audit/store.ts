import type { AuditEntry, AuditKind, AuditRow, DatabaseFile, ReadCaller, SqlValue } from "../../db/index.ts";
import { startOfAction, startOfTarget } from "../../db/index.ts";
import { SIZES_TIMEOUT_MS } from "./limits.ts";

// OR IGNORE would move the sequence of ids for each row that is there, which the gate of the file does not take for a change.
const INSERT = `INSERT INTO batches (batch, kind, at, entries)
  SELECT ?1, ?2, ?3, ?4 WHERE NOT EXISTS (SELECT 1 FROM batches WHERE batch = ?1)`;
const SIZES = "SELECT kind, sum(octet_length(entries)) FROM batches GROUP BY kind";
const OLDEST = "SELECT min(at) AS at FROM batches";
export const REMOVE_OLD = "DELETE FROM batches WHERE id IN (SELECT id FROM batches WHERE at < ?1 ORDER BY at LIMIT ?2)";
export const REMOVE_FIRST = `DELETE FROM batches WHERE id IN (SELECT id FROM batches WHERE kind = ?1 ORDER BY id LIMIT ?2)
  RETURNING octet_length(entries) AS bytes`;

/** Position in the log: entries before it are older. */
export interface AuditPlace {
  batch: number;
  index: number;
}

/** Filter of entries; null: any. */
export interface AuditFilter {
  /** Name or kind of the actor, or of the user that it acted as. */
  actor: string | null;
  /** An action, or its first part: `record`. */
  action: string | null;
  /** A target, or its first segments: `db/shared`. */
  target: string | null;
  /** The id of a request. */
  request: string | null;
  /** Earliest time, in milliseconds since 1970. */
  after: number | null;
}

export interface AuditQuery extends AuditFilter {
  /** Cursor; null: from the newest. */
  before: AuditPlace | null;
  limit: number;
}

/** An entry as it is answered, with its time in ISO 8601. */
export interface ShownEntry extends Omit<AuditEntry, "at"> {
  at: string;
}

export interface AuditPage {
  entries: ShownEntry[];
  next: AuditPlace | null;
}

export type AuditStore = ReturnType<typeof createAuditStore>;

export function createAuditStore(file: DatabaseFile) {
  return {
    /** Inserts rows, except those that the log has. */
    async insertRows(rows: readonly AuditRow[]): Promise<void> {
      await file.write((tx) => {
        for (const { id, kind, at, entries } of rows) tx.query(INSERT).run(id, kind, at, entries);
        return null;
      });
    },
    /** Returns a page, newest first. Runs in a query process. */
    page: (query: AuditQuery, caller: ReadCaller): Promise<AuditPage> =>
      readPage(query, (sql, params) => file.read(sql, params, { caller })),
    /** Sums up the bytes of entries by kind. Reads the whole log, in a query process, which `signal` ends. */
    async sizes(signal: AbortSignal): Promise<Map<string, number>> {
      const rows = await file.read(SIZES, [], { timeoutMs: SIZES_TIMEOUT_MS, signal });
      return new Map(rows.map(([kind, bytes]) => [String(kind), Number(bytes)]));
    },
    /** Returns the time of the oldest entry in milliseconds since 1970; null: there is none. */
    oldest: (): number | null => file.query<{ at: number | null }>(OLDEST).get()?.at ?? null,
    /** Removes rows up to a time. Resolves to the number of removed rows, at most `limit`. */
    removeUntil: (at: number, limit: number): Promise<number> =>
      file.write((tx) => tx.query(REMOVE_OLD).run(at, limit).changes),
    /** Removes the oldest rows of a kind, at most `limit`. Resolves to the bytes of the removed rows. */
    removeFirst: (kind: AuditKind, limit: number): Promise<number> =>
      file.write((tx) =>
        tx
          .query<{ bytes: number }>(REMOVE_FIRST)
          .all(kind, limit)
          .reduce((sum, { bytes }) => sum + bytes, 0),
      ),
  };
}

type EntryRow = [batch: number, index: number, entry: string];

/**
 * Reads a page, also for the command line, which has no server. `read` returns the values of rows. Texts are searched for the
 * beginning of action and target before they are parsed.
 */
export async function readPage(
  { actor, action, target, request, after, before, limit }: AuditQuery,
  read: (sql: string, params: SqlValue[]) => unknown[][] | Promise<unknown[][]>,
): Promise<AuditPage> {
  const { batch, index } = before ?? { batch: Number.MAX_SAFE_INTEGER, index: 0 };
  const params: SqlValue[] = [batch, index, limit + 1];
  const bind = (value: SqlValue): string => `?${params.push(value)}`;
  const conditions = ["batches.id <= ?1", "(batches.id, entry.key) < (?1, ?2)"];
  const has = (text: string) => `instr(entries, ${bind(text)}) > 0`;
  const beginsWith = (member: string, value: string, separator: string): string => {
    const [whole, start] = [bind(value), bind(value + separator)];
    const text = `entry.value ->> '${member}'`;
    return `(${text} = ${whole} OR substr(${text}, 1, length(${start})) = ${start})`;
  };
  if (after !== null) conditions.push(`at >= ${bind(after)}`, `entry.value ->> 'at' >= ${bind(after)}`);
  if (action !== null) conditions.push(has(startOfAction(action)), beginsWith("action", action, "."));
  if (target !== null) conditions.push(has(startOfTarget(target)), beginsWith("target", target, "/"));
  if (request !== null) {
    conditions.push(has(JSON.stringify(request)), `entry.value ->> 'requestId' = ${bind(request)}`);
  }
  if (actor !== null) {
    const members = ["name", "kind", "as"].map((name) => `entry.value -> 'actor' ->> '${name}'`);
    conditions.push(`${bind(actor)} IN (${members.join(", ")})`);
  }
  const sql = `SELECT batches.id, entry.key, entry.value FROM batches, json_each(batches.entries) AS entry
    WHERE ${conditions.join(" AND ")} ORDER BY batches.id DESC, entry.key DESC LIMIT ?3`;
  // The cast follows the columns of the statement.
  const rows = (await read(sql, params)) as EntryRow[];
  const hasMore = rows.length > limit;
  if (hasMore) rows.pop();
  const last = rows.at(-1);
  // Written by `entryText`.
  const entries = rows.map(([, , text]) => shownEntry(JSON.parse(text) as AuditEntry));
  return { entries, next: hasMore && last !== undefined ? { batch: last[0], index: last[1] } : null };
}

export const shownEntry = ({
  at,
  actor,
  address,
  action,
  target,
  before,
  after,
  requestId,
}: AuditEntry): ShownEntry => ({
  at: new Date(at).toISOString(),
  actor,
  address,
  action,
  target,
  before,
  after,
  requestId,
});
