import type { JsonObject } from "../../kernel/json/json.ts";
import type { Retries } from "../live/failures.ts";
import type { RecordWindow } from "../live/feed/window.ts";
import type { Plan } from "../live/plan.ts";
import type { Transport } from "../transport/types.ts";
import { EXPANDED_AT_ONCE, KNOWN_MAX } from "./limits.ts";
import { readRelated } from "./related.ts";

interface Expansion {
  /** What the record refers to. */
  readonly key: string;
  readonly expand: JsonObject;
  /** The last record that was shown with it, and as what. */
  record?: JsonObject;
  shown?: JsonObject;
}

/** What the records of one query refer to. It is read again for a record that refers to others than before. */
export interface Expansions {
  /** Takes `expand` out of the records of a list. */
  learn(records: readonly JsonObject[]): JsonObject[];
  /**
   * The record with its `expand`, or as it was shown last while that is being read; null: not to be shown yet. `isOwn`: it is a
   * write of this client, which is shown without it.
   */
  shown(record: JsonObject, isOwn: boolean): JsonObject | null;
  stop(): void;
}

interface Parts {
  transport: Transport;
  plan: Plan;
  /** Stopped by who gives it. */
  retries: Retries;
  /** What the query has. */
  window: Pick<RecordWindow, "get">;
  /** Called when more is known. */
  changed(): void;
}

const idOf = (record: JsonObject): string => String(record["id"]);

/** Imports no value that the live queries have, so that the bundle of a page without `expand` stays one file. */
export function createExpansions({ transport, plan, retries, window, changed }: Parts): Expansions {
  const { expand: paths } = plan.query;
  const known = new Map<string, Expansion>();
  const missing = new Map<string, string>();
  let isReading = false;
  let isStopped = false;

  // `comments(postId)` depends on the id alone.
  const fields = paths.map((path) => path.split(".", 1)[0] ?? path).filter((name) => !name.includes("("));
  const keyOf = (record: JsonObject) => JSON.stringify(fields.map((name) => record[name] ?? null));
  const nothing: JsonObject = {};
  for (const path of paths) {
    const name = path.split(".", 1)[0] ?? path;
    nothing[name] = name.includes("(") ? { items: [], hasMore: false } : null;
  }

  const learn: Expansions["learn"] = (records) =>
    records.map((record) => {
      const { expand, ...own } = record;
      const before = known.get(idOf(own));
      const next = { key: keyOf(own), expand: (expand ?? nothing) as JsonObject };
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
        // It may be gone meanwhile. A change says so, as it does where a newer record refers to others.
        known.set(id, { key, expand: nothing });
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
        if (isOwn) return { ...record, expand: nothing };
        missing.set(id, key);
        // All that one look at the items asks for is read together.
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
