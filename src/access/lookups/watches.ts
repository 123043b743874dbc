import type { Change } from "../../db/index.ts";
import type { JsonObject, JsonValue } from "../../kernel/json/json.ts";
import { WATCHED_PLACES_MAX } from "./limits.ts";
import type { LookedAt, LookupWatch, RuleAddress } from "./lookups.ts";

/** The watchers of one list of fields of a table, by the JSON of their values. */
interface WatchedFields<Watcher> {
  fields: readonly string[];
  byValues: Map<string, Set<Entry<Watcher>>>;
}

/** One watch, since a watcher may have several. */
interface Entry<Watcher> {
  watcher: Watcher;
}

type WatchedTable<Watcher> = Map<string, WatchedFields<Watcher>>;
type WatchedFile<Watcher> = Map<string, WatchedTable<Watcher>>;

/** Where a watch is entered, so that it can be removed. */
interface Place<Watcher> {
  file: string;
  table: string;
  fields: WatchedFields<Watcher>;
  values: string;
}

const fileOf = ({ namespace, instanceId }: RuleAddress): string =>
  instanceId === null ? namespace : `${namespace}/${instanceId}`;
const keyOf = (fields: readonly string[]): string => fields.join("\n");

const valuesOf = (fields: readonly string[], record: JsonObject): string => {
  const [only] = fields;
  if (fields.length === 1 && only !== undefined) return valuesText([record[only] ?? null]);
  return valuesText(fields.map((name) => record[name] ?? null));
};

const valuesText = (values: readonly JsonValue[]): string => {
  const [only] = values;
  return values.length === 1 && typeof only === "string" ? only : `\n${JSON.stringify(values)}`;
};

/**
 * What the rules of one watcher look at. To ask the rules again, begin another watch, and end this one when they have
 * answered.
 */
export interface EndingWatch extends LookupWatch {
  end(): void;
}

/**
 * Who has looked at which records, so that those whom a commit concerns are found by its records' values: the time for a change
 * grows with the number of watched lists of fields of its table (one or two), not with that of watchers.
 *
 * Watch before the rule is asked, not after: a commit that comes while a rule waits then finds the watcher. A change is matched
 * as it was before and as it is after. Not exact: a watcher may be named whose answer is the same.
 */
export class LookupWatches<Watcher> {
  readonly #files = new Map<string, WatchedFile<Watcher>>();

  /**
   * A new watch of `watcher`. Beyond WATCHED_PLACES_MAX places it watches whole tables instead, so that its size is bounded.
   */
  watch(watcher: Watcher): EndingWatch {
    const places = new Map<string, Place<Watcher>>();
    const entry: Entry<Watcher> = { watcher };
    const enter = (file: string, { table, fields, values }: Pick<LookedAt, "table" | "fields" | "values">): void => {
      const text = valuesText(values);
      const key = `${file}\n\n${table}\n\n${keyOf(fields)}\n\n${text}`;
      if (places.has(key)) return;
      const watched = this.#fieldsOf(file, table, fields);
      inserted(watched.byValues, text, () => new Set()).add(entry);
      places.set(key, { file, table, fields: watched, values: text });
    };
    return {
      lookedAt: (place) => {
        const isWhole = places.size >= WATCHED_PLACES_MAX;
        enter(fileOf(place), isWhole ? { table: place.table, fields: [], values: [] } : place);
      },
      end: () => {
        for (const place of places.values()) this.#leave(place, entry);
        places.clear();
      },
    };
  }

  /** The watchers that these changes of one commit concern. */
  touched(address: RuleAddress, groups: readonly (readonly Change[])[]): Set<Watcher> {
    const touched = new Set<Watcher>();
    const file = this.#files.get(fileOf(address));
    if (file === undefined) return touched;
    for (const changes of groups) {
      for (const { table, before, after } of changes) {
        const watched = file.get(table);
        if (watched === undefined) continue;
        for (const { fields, byValues } of watched.values()) {
          const was = before === null ? null : valuesOf(fields, before);
          const is = after === null ? null : valuesOf(fields, after);
          if (was !== null) addAll(touched, byValues.get(was));
          if (is !== null && is !== was) addAll(touched, byValues.get(is));
        }
      }
    }
    return touched;
  }

  /** The watchers of a file that was deleted or replaced as a whole. */
  touchedFile(address: RuleAddress): Set<Watcher> {
    const touched = new Set<Watcher>();
    for (const table of this.#files.get(fileOf(address))?.values() ?? []) {
      for (const { byValues } of table.values()) for (const entries of byValues.values()) addAll(touched, entries);
    }
    return touched;
  }

  /** Whether nothing of this file is watched, so that its changes need no look. */
  isUnwatched(address: RuleAddress): boolean {
    return this.#files.size === 0 || !this.#files.has(fileOf(address));
  }

  #fieldsOf(file: string, table: string, fields: readonly string[]): WatchedFields<Watcher> {
    const tables = inserted(this.#files, file, () => new Map());
    const lists = inserted(tables, table, () => new Map());
    return inserted(lists, keyOf(fields), () => ({ fields, byValues: new Map() }));
  }

  #leave({ file, table, fields, values }: Place<Watcher>, entry: Entry<Watcher>): void {
    const entries = fields.byValues.get(values);
    entries?.delete(entry);
    if (entries?.size === 0) fields.byValues.delete(values);
    if (fields.byValues.size > 0) return;
    const tables = this.#files.get(file);
    const lists = tables?.get(table);
    if (lists?.get(keyOf(fields.fields)) === fields) lists.delete(keyOf(fields.fields));
    if (lists?.size === 0) tables?.delete(table);
    if (tables?.size === 0) this.#files.delete(file);
  }
}

function inserted<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const value = make();
  map.set(key, value);
  return value;
}

function addAll<Watcher>(watchers: Set<Watcher>, entries: Iterable<Entry<Watcher>> | undefined): void {
  if (entries !== undefined) for (const { watcher } of entries) watchers.add(watcher);
}
