import type { JsonObject } from "../../kernel/json/json.ts";
import type { Transport } from "../transport/types.ts";
import type { Retries } from "./failures.ts";
import type { Plan } from "./plan.ts";
import type { RecordWindow } from "./window.ts";

/** Reads the records with these ids and their expansions, as far as the user may read them. */
async function readRelated(transport: Transport, plan: Plan, ids: readonly string[]): Promise<JsonObject[]> {
  const { fields, expand } = plan.parameters;
  const query = { fields, expand, filter: JSON.stringify([["id", "in", ids]]), limit: ids.length, total: false };
  try {
    return (await transport.request<{ items: JsonObject[] }>("GET", plan.path, { query })).items;
  } catch (error) {
    // Lists with a filter are denied by rules that look at each record, and many large expansions exceed the limit together.
    // Single reads then work.
    if (![403, 413].includes(statusOf(error))) throw error;
    return (await Promise.all(ids.map((id) => readOne(transport, plan, id)))).flat();
  }
}

async function readOne(transport: Transport, plan: Plan, id: string): Promise<JsonObject[]> {
  const { fields, expand } = plan.parameters;
  const query = { fields, expand };
  try {
    return [await transport.request<JsonObject>("GET", `${plan.path}/${encodeURIComponent(id)}`, { query })];
  } catch (error) {
    if (statusOf(error) >= 400 && statusOf(error) < 500) return [];
    throw error;
  }
}

/** Returns the status of a `PlatformError`. */
const statusOf = (error: unknown): number => Number((error as { status?: number }).status);

/** Bound of the records whose expansions are known; beyond it, those that have left the query are dropped. */
export const KNOWN_MAX = 2_000;

/** Number of records whose references are read with one request. */
const EXPANDED_AT_ONCE = 100;

interface Expansion {
  /** References of the record. */
  readonly key: string;
  readonly expand: JsonObject;
  /** Last record shown with this expansion, and its shown form. */
  record?: JsonObject;
  shown?: JsonObject;
}

/** Cache of the expansions of one query's records. Reread when a record's references change. */
export interface Expansions {
  /** Takes `expand` out of the records of a list. */
  learn(records: readonly JsonObject[]): JsonObject[];
  /**
   * Returns the record with its `expand`, or as last shown while that is being read; null: not to be shown yet. `isOwn`: a write
   * of this client, which is shown without `expand`.
   */
  shown(record: JsonObject, isOwn: boolean): JsonObject | null;
  stop(): void;
}

interface Parts {
  transport: Transport;
  plan: Plan;
  /** Retries, stopped by the caller. */
  retries: Retries;
  /** Records of the query. */
  window: Pick<RecordWindow, "get">;
  /** Called after more has become known. */
  changed(): void;
}

const idOf = (record: JsonObject): string => String(record["id"]);

/**
 * Creates the cache of a query. This module imports no values of the live queries, so that pages without `expand` load one file.
 */
export function createExpansions({ transport, plan, retries, window, changed }: Parts): Expansions {
  const { expand: paths } = plan.query;
  const known = new Map<string, Expansion>();
  const missing = new Map<string, string>();
  let isReading = false;
  let isStopped = false;

  const names = paths.map((path) => path.split(".", 1)[0] ?? path);
  // The expansion of `comments(postId)` depends on the id alone.
  const fields = names.filter((name) => !name.includes("("));
  const keyOf = (record: JsonObject) => JSON.stringify(fields.map((name) => record[name] ?? null));
  /** Returns the expansion of a record of which nothing is known but its references. */
  const nothingOf = (key: string): JsonObject =>
    Object.fromEntries(
      names.map((name) => {
        const one = Array.isArray(JSON.parse(key)[fields.indexOf(name)]) ? [] : null;
        return [name, name.includes("(") ? { items: [], hasMore: false } : one];
      }),
    );

  const learn: Expansions["learn"] = (records) =>
    records.map((record) => {
      const { expand, ...own } = record;
      const before = known.get(idOf(own));
      const key = keyOf(own);
      const next = { key, expand: (expand ?? nothingOf(key)) as JsonObject };
      const isSame = before !== undefined && JSON.stringify(before.expand) === JSON.stringify(next.expand);
      if (!isSame || before.key !== next.key) known.set(idOf(own), next);
      return own;
    });
  const read = async () => {
    if (isReading || isStopped || missing.size === 0) return;
    isReading = true;
    const asked = [...missing].slice(0, EXPANDED_AT_ONCE);
    try {
      const ids = asked.map(([id]) => id);
      const records = await readRelated(transport, plan, ids);
      retries.succeeded();
      for (const [id, key] of asked) {
        missing.delete(id);
        // The record may be deleted by now. A change reports that, or newer references.
        known.set(id, { key, expand: nothingOf(key) });
      }
      learn(records);
      if (known.size > KNOWN_MAX) for (const id of known.keys()) if (window.get(id) === undefined) known.delete(id);
    } catch {
      retries.later(() => void read());
      return;
    } finally {
      isReading = false;
    }
    if (isStopped) return;
    changed();
    void read();
  };

  return {
    learn,
    shown(record, isOwn) {
      const id = idOf(record);
      const key = keyOf(record);
      const found = known.get(id);
      if (found === undefined || found.key !== key) {
        if (isOwn) return { ...record, expand: nothingOf(key) };
        missing.set(id, key);
        // All requests made during one read of the items are batched.
        queueMicrotask(() => void read());
        return found?.shown ?? null;
      }
      if (found.record !== record) {
        found.record = record;
        found.shown = { ...plan.shown(record), expand: found.expand };
      }
      return found.shown ?? null;
    },
    stop() {
      isStopped = true;
    },
  };
}
