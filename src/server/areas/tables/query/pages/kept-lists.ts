import type { Database } from "bun:sqlite";
import { LRUCache } from "lru-cache";
import type { ListResult } from "../../../../config/app/index.ts";
import type { DatabaseFile } from "../../../../db/index.ts";
import { KEPT_LIST_LENGTH_MAX, KEPT_LISTS_LENGTH_MAX, KEPT_QUERY_LENGTH_MAX, RECENT_LISTS_MAX } from "../../limits.ts";
import type { TableModel } from "../../model/model.ts";
import { exceeds } from "../../write/stored-bytes.ts";

/** A list as JSON. */
export class ListText {
  readonly text: string;
  readonly records: number;

  constructor(text: string, records: number) {
    this.text = text;
    this.records = records;
  }
}

/** The state of a table in which a list was read. The connection tells instances apart, which share their requests. */
interface Reading {
  sqlite: Database;
  version: number;
}

/**
 * Answers to lists that are asked for again and again, as text, while their table has not changed. Only for callers that may
 * read every record: they all get the same. [TB472]
 */
export interface KeptLists {
  /** null: none is kept for this query. */
  get(file: DatabaseFile, model: TableModel, queryText: string): ListText | null;
  /** Call before the read; call the result with its answer, which it returns, or as text from the second time on. */
  begin(file: DatabaseFile, model: TableModel, queryText: string): (answer: ListResult) => ListResult | ListText;
}

export function createKeptLists(): KeptLists {
  const kept = new LRUCache<string, Reading & { list: ListText }>({
    maxSize: KEPT_LISTS_LENGTH_MAX,
    sizeCalculation: ({ list }, key) => list.text.length + key.length,
  });
  /** The lists that were read lately. All are forgotten at once: a list that is asked for often comes again. */
  const recent = new Map<string, Reading>();
  const isOf = (reading: Reading | undefined, { sqlite }: DatabaseFile, version: number | null): boolean =>
    reading !== undefined && reading.sqlite === sqlite && reading.version === version;

  return {
    get(file, model, queryText) {
      if (kept.size === 0 || queryText.length > KEPT_QUERY_LENGTH_MAX) return null;
      const known = kept.get(keyOf(model, queryText));
      return known !== undefined && isOf(known, file, file.tableVersion(model.name)) ? known.list : null;
    },
    begin(file, model, queryText) {
      const version = file.tableVersion(model.name);
      if (version === null || queryText.length > KEPT_QUERY_LENGTH_MAX) return (answer) => answer;
      const { sqlite } = file;
      const key = keyOf(model, queryText);
      return (answer) => {
        if (file.sqlite !== sqlite || file.tableVersion(model.name) !== version) return answer;
        if (!isOf(recent.get(key), file, version)) {
          if (recent.size >= RECENT_LISTS_MAX) recent.clear();
          recent.set(key, { sqlite, version });
          return answer;
        }
        // A larger one is serialised in pieces.
        if (exceeds(answer.items, KEPT_LIST_LENGTH_MAX)) return answer;
        const text = JSON.stringify(answer);
        if (text.length > KEPT_LIST_LENGTH_MAX) return answer;
        const list = new ListText(text, answer.items.length);
        kept.set(key, { sqlite, version, list });
        return list;
      };
    },
  };
}

const keyOf = ({ namespace, name }: TableModel, queryText: string): string => `${namespace}/${name}?${queryText}`;
