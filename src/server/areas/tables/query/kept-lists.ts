import type { Database } from "bun:sqlite";
import { LRUCache } from "lru-cache";
import type { ListResult } from "../../../config/app/index.ts";
import type { DatabaseFile } from "../../../db/index.ts";
import { KEPT_LIST_LENGTH_MAX, KEPT_LISTS_LENGTH_MAX, KEPT_QUERY_LENGTH_MAX, RECENT_LISTS_MAX } from "../limits.ts";
import type { TableModel } from "../model/model.ts";
import { exceeds } from "../model/record-size.ts";

/** A list as JSON. */
export class ListText {
  readonly text: string;
  readonly records: number;

  constructor(text: string, records: number) {
    this.text = text;
    this.records = records;
  }
}

/** State of a table when a list was read. The connection distinguishes instances, which have the same requests. */
interface Reading {
  sqlite: Database;
  version: number;
}

/** Caches the answer of a read and returns it: as text from the second time on. */
type Keep = (answer: ListResult) => ListResult | ListText;

/**
 * Cache of the answers to repeated lists, as text, valid while their table has not changed. Only for callers that may read every
 * record: they all get the same. [TB472]
 */
export class KeptLists {
  readonly #kept = new LRUCache<string, Reading & { list: ListText }>({
    maxSize: KEPT_LISTS_LENGTH_MAX,
    sizeCalculation: ({ list }, key) => list.text.length + key.length,
  });
  /** Recently read lists. All are evicted at once: a frequent list soon comes again. */
  readonly #recent = new Map<string, Reading>();

  /** Returns the cached answer to a query, or the function that caches the answer about to be read. */
  find(file: DatabaseFile, { namespace, name }: TableModel, queryText: string): ListText | Keep {
    const version = file.tableVersion(name);
    if (version === null || queryText.length > KEPT_QUERY_LENGTH_MAX) return (answer) => answer;
    const key = `${namespace}/${name}?${queryText}`;
    const reading = { sqlite: file.sqlite, version };
    const known = this.#kept.get(key);
    if (isOf(known, reading)) return known.list;
    return (answer) => {
      const isChanged = file.sqlite !== reading.sqlite || file.tableVersion(name) !== version;
      return isChanged ? answer : this.#keep(key, reading, answer);
    };
  }

  #keep(key: string, reading: Reading, answer: ListResult): ListResult | ListText {
    if (!isOf(this.#recent.get(key), reading)) {
      if (this.#recent.size >= RECENT_LISTS_MAX) this.#recent.clear();
      this.#recent.set(key, reading);
      return answer;
    }
    // A larger one is serialised in pieces.
    if (exceeds(answer.items, KEPT_LIST_LENGTH_MAX)) return answer;
    const text = JSON.stringify(answer);
    if (text.length > KEPT_LIST_LENGTH_MAX) return answer;
    const list = new ListText(text, answer.items.length);
    this.#kept.set(key, { ...reading, list });
    return list;
  }
}

const isOf = <R extends Reading>(known: R | undefined, { sqlite, version }: Reading): known is R =>
  known !== undefined && known.sqlite === sqlite && known.version === version;
