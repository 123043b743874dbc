import type { Clock } from "../../../kernel/clock.ts";
import { isSecretName, SerialisedJson } from "../../../kernel/json/shown.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { endOfPrefix } from "../../../kernel/records/text-match.ts";
import { startSweeping, untilBytes } from "../../../kernel/time/sweeping.ts";
import type { Actor, OpenedFile, ReadCaller, Transaction } from "../../db/index.ts";
import { encodeCursor } from "./actions.ts";
import {
  LISTED_PAST_EXPIRED_MAX,
  SWEEP_INTERVAL_MS,
  SWEEP_PAUSE_MS,
  SWEEP_STEP_BYTES,
  SWEEP_STEP_KEYS,
} from "./limits.ts";

/** Query for keys after `after` that begin with `prefix`; `after` null: from the first. */
interface KeyQuery {
  prefix: string;
  limit: number;
  after: string | null;
}

export interface KeyPage {
  keys: string[];
  /** Opaque cursor of the next page; null on the last page. */
  cursor: string | null;
}

const GET = "SELECT value FROM entries WHERE key = ?1 AND (expires_at IS NULL OR expires_at > ?2)";
const STORED = "SELECT value FROM entries WHERE key = ?1";
const SET = "INSERT OR REPLACE INTO entries (key, value, expires_at) VALUES (?1, ?2, ?3)";
const DELETE = "DELETE FROM entries WHERE key = ?1";
// One lower bound: with two, SQLite seeks to the first alone and reads every key between them. No upper bound in the inner query:
// to compare with one, SQLite would read whole entries, with their values.
const listSql = (condition: string): string => `SELECT key FROM
  (SELECT key FROM entries WHERE key >= max(?1, ?2) AND key <> ?1 ${condition} ORDER BY key LIMIT ?4) WHERE key < ?3`;
const LIST = listSql("");
const LIST_UNEXPIRED = listSql("AND (expires_at IS NULL OR expires_at > ?5)");
/** Covered by the index of expiry, which has the keys too. */
const SOME_EXPIRED = `SELECT key FROM entries WHERE expires_at <= ?1 LIMIT ${LISTED_PAST_EXPIRED_MAX + 1}`;
const HAS_EXPIRED = "SELECT 1 FROM entries WHERE expires_at <= ?1 LIMIT 1";
const EXPIRED = `SELECT key, octet_length(value) AS bytes FROM entries WHERE expires_at <= ?1
  ORDER BY expires_at LIMIT ${SWEEP_STEP_KEYS}`;

/** Upper bound of a list without one: in SQLite every text is less than every blob. */
const AFTER_EVERY_TEXT = new Uint8Array([0]);

export type EntryStore = ReturnType<typeof createEntryStore>;

/** Creates the store of one namespace's file: `kv/NAME.db`. */
export function createEntryStore(file: OpenedFile, namespace: string) {
  const get = file.prepare<{ value: string }>(GET);
  const list = file.prepare<{ key: string }>(LIST);
  const someExpired = file.prepare<{ key: string }>(SOME_EXPIRED);
  const hasExpired = file.prepare<unknown>(HAS_EXPIRED);
  const run = (tx: Transaction, sql: string, ...params: (string | number | null)[]): number =>
    tx.query(sql).run(...params).changes;
  /** Audits a change; to be called before it. Values under the name of a secret are not shown. */
  const audit = (tx: Transaction, change: { by: Actor; action: string; key: string; value: string | null }): void => {
    const { by, action, key, value } = change;
    tx.causedBy(by);
    tx.audit(() => {
      const present = tx.query<{ value: string }>(STORED).get(key)?.value ?? null;
      const shown = (text: string | null) =>
        text === null ? null : isSecretName(key) ? "[hidden]" : new SerialisedJson(text);
      return { action, target: `kv/${namespace}/${key}`, before: shown(present), after: shown(value) };
    });
  };

  return {
    /** Returns the value's JSON text; null if missing or expired. */
    get: (key: string, now: number): string | null => get.get(key, now)?.value ?? null,
    /** Replaces value and expiry. `expiresAt` null: never. Durable when it resolves. */
    async set(key: string, value: string, { expiresAt, by }: { expiresAt: number | null; by: Actor }): Promise<void> {
      await file.write((tx) => {
        audit(tx, { by, action: "kv.set", key, value });
        return run(tx, SET, key, value, expiresAt);
      });
    },
    async delete(key: string, by: Actor): Promise<void> {
      await file.write((tx) => {
        audit(tx, { by, action: "kv.delete", key, value: null });
        return run(tx, DELETE, key);
      });
    },
    /** Lists keys. Errors: those of `DatabaseFile.read` if very many expired keys are not swept yet. */
    async list({ prefix, limit, after }: KeyQuery, now: number, caller: ReadCaller): Promise<KeyPage> {
      const end = endOfPrefix(prefix) ?? AFTER_EVERY_TEXT;
      const range = [after ?? "", prefix, end] as const;
      // One key more than requested shows whether there is a next page.
      const countMax = limit + 1;
      const expired = new Set(someExpired.all(now).map(({ key }) => key));
      // A row's expiry is stored after its value, which may span many pages, so it is not read here. Very many keys are not either.
      const found =
        expired.size <= LISTED_PAST_EXPIRED_MAX
          ? list.all(...range, countMax + expired.size).flatMap(({ key }) => (expired.has(key) ? [] : [key]))
          : (await file.read(LIST_UNEXPIRED, [...range, countMax, now], { caller })).map(([key]) => String(key));
      const keys = found.slice(0, limit);
      const hasMore = found.length > limit;
      const last = keys.at(-1);
      return { keys, cursor: hasMore && last !== undefined ? encodeCursor(last) : null };
    },
    hasExpired: (now: number): boolean => hasExpired.get(now) !== null,
    /** Removes some expired entries, of bounded number and size; resolves to whether there may be more. */
    removeExpired: (now: number): Promise<boolean> =>
      file.write((tx) => {
        const expired = tx.query<{ key: string; bytes: number }>(EXPIRED).all(now);
        const step = untilBytes(expired, SWEEP_STEP_BYTES);
        for (const { key } of step) run(tx, DELETE, key);
        return step.length < expired.length || expired.length === SWEEP_STEP_KEYS;
      }),
  };
}

/** Starts a sweep that removes expired keys in steps of bounded size. Expired keys are invisible, swept or not. */
export function startSweep(deps: { stores: readonly EntryStore[]; clock: Clock; logger: Logger }): () => Promise<void> {
  const { stores, clock, logger } = deps;
  return startSweeping({
    clock,
    intervalMs: SWEEP_INTERVAL_MS,
    pauseMs: SWEEP_PAUSE_MS,
    async sweep(stopping) {
      const now = clock.now();
      let isMore = false;
      for (const store of stores) {
        if (stopping.aborted || !store.hasExpired(now)) continue;
        if (await store.removeExpired(now)) isMore = true;
      }
      return isMore;
    },
    onFailure: (cause) => logger.error("kv: removing expired keys failed", { cause }),
  });
}
