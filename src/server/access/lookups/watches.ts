import type { JsonObject, JsonValue } from "../../../kernel/json/json.ts";
import type { Change } from "../../db/index.ts";
import { WATCHED_PLACES_MAX } from "./limits.ts";
import { ANY_INSTANCE, type LookedAt, type LookupWatch, type RuleAddress } from "./lookups.ts";

/** The watchers of one list of fields of a table, by the JSON of their values. */
interface WatchedFields<Watcher> {
  fields: readonly string[];
  byValues: Map<string, Set<Entry<Watcher>>>;
}

/** One watch; a watcher may have several. */
interface Entry<Watcher> {
  watcher: Watcher;
}

type WatchedTable<Watcher> = Map<string, WatchedFields<Watcher>>;
type WatchedFile<Watcher> = Map<string, WatchedTable<Watcher>>;

/** The place of a watch's entry, for its removal. */
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
 * The places that the rules of one watcher look at. To re-evaluate the rules, begin another watch, and end this one when they have
 * answered.
 */
export interface EndingWatch extends LookupWatch {
  /** Whether another watch of the same `LookupWatches` covers every place of this one. */
  isWithin(other: EndingWatch): boolean;
  /** Whether the watch has looked at the place with this key. */
  hasLookedAt(key: string): boolean;
  end(): void;
}

/**
 * An index from records to their watchers, by the records' values: the time for a change grows with the number of watched field
 * lists of its table (one or two), not with that of watchers.
 *
 * Watch before evaluating the rule, not after: a commit during a rule's await then finds the watcher. A change is matched as it was
 * before and as it is after. May overreport: a watcher may be reported whose answer is unchanged.
 */
export class LookupWatches<Watcher> {
  readonly #files = new Map<string, WatchedFile<Watcher>>();

  /** Begins a watch of `watcher`. Beyond WATCHED_PLACES_MAX places it watches whole tables instead, so that its size is bounded. */
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
      isWithin: (other) => places.keys().every((key) => other.hasLookedAt(key)),
      hasLookedAt: (key) => places.has(key),
      end: () => {
        for (const place of places.values()) this.#leave(place, entry);
        places.clear();
      },
    };
  }

  /** Calls `visit` with the watchers that these changes of one commit concern, possibly more than once with the same. */
  touched(address: RuleAddress, groups: readonly (readonly Change[])[], visit: (watcher: Watcher) => void): void {
    for (const file of this.#filesOf(address)) {
      for (const changes of groups) for (const change of changes) visitTouched(file, change, visit);
    }
  }

  /** Calls `visit` with the watchers of a file that was deleted or replaced as a whole. */
  touchedFile(address: RuleAddress, visit: (watcher: Watcher) => void): void {
    for (const file of this.#filesOf(address)) {
      for (const table of file.values()) {
        for (const { byValues } of table.values()) for (const entries of byValues.values()) visitAll(entries, visit);
      }
    }
  }

  /** Whether nothing of this file is watched, so that its changes can be skipped. */
  isUnwatched(address: RuleAddress): boolean {
    return this.#files.size === 0 || this.#filesOf(address).length === 0;
  }

  /** Returns the watched places of this file, and of every instance of its namespace. */
  #filesOf(address: RuleAddress): WatchedFile<Watcher>[] {
    const own = this.#files.get(fileOf(address));
    const any =
      address.instanceId === null ? undefined : this.#files.get(fileOf({ ...address, instanceId: ANY_INSTANCE }));
    return [own, any].filter((file) => file !== undefined);
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

function visitTouched<Watcher>(
  file: WatchedFile<Watcher>,
  { table, before, after }: Change,
  visit: (watcher: Watcher) => void,
): void {
  for (const { fields, byValues } of file.get(table)?.values() ?? []) {
    const was = before === null ? null : valuesOf(fields, before);
    const is = after === null ? null : valuesOf(fields, after);
    if (was !== null) visitAll(byValues.get(was), visit);
    if (is !== null && is !== was) visitAll(byValues.get(is), visit);
  }
}

function visitAll<Watcher>(entries: Iterable<Entry<Watcher>> | undefined, visit: (watcher: Watcher) => void): void {
  if (entries !== undefined) for (const { watcher } of entries) visit(watcher);
}
