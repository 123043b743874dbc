import type { Database } from "bun:sqlite";
import { LRUCache } from "lru-cache";
import type { ListResult } from "../../../config/app/index.ts";
import type { DatabaseFile } from "../../../db/index.ts";
import { KEPT_LIST_LENGTH_MAX, KEPT_LISTS_LENGTH_MAX } from "../../limits.ts";
import type { ListRequest } from "../list-query.ts";

/** A list as JSON. */
export class ListText {
  readonly text: string;
  readonly records: number;

  constructor(text: string, records: number) {
    this.text = text;
    this.records = records;
  }
}

interface Kept {
  /** Of the table, when the list was last read: `list` is of this version. */
  version: number;
  list: ListText | null;
}

/**
 * Answers to lists that are asked for again and again, as text, while their table has not changed. Only for callers that may
 * read every record: they all get the same. [TB472]
 */
export interface KeptLists {
  get(file: DatabaseFile, table: string, request: ListRequest): ListText | null;
  /** Call before the read; call the result with its answer, which it gives back, or as text from the second time on. */
  begin(file: DatabaseFile, table: string, request: ListRequest): (answer: ListResult) => ListResult | ListText;
}

export function createKeptLists(): KeptLists {
  // A request is the same object for equal queries of a table, and instances share it.
  const byRequest = new WeakMap<ListRequest, WeakMap<Database, Kept>>();
  const recent = new LRUCache<Kept, ListText>({
    maxSize: KEPT_LISTS_LENGTH_MAX,
    sizeCalculation: ({ text }) => text.length,
    dispose: (_, kept) => {
      kept.list = null;
    },
  });

  const keptOf = (sqlite: Database, request: ListRequest): Kept => {
    const files = byRequest.get(request) ?? new WeakMap<Database, Kept>();
    byRequest.set(request, files);
    const kept = files.get(sqlite) ?? { version: -1, list: null };
    files.set(sqlite, kept);
    return kept;
  };

  return {
    get(file, table, request) {
      const kept = byRequest.get(request)?.get(file.sqlite);
      if (kept === undefined || kept.list === null || kept.version !== file.tableVersion(table)) return null;
      return recent.get(kept) ?? null;
    },
    begin(file, table, request) {
      const { sqlite } = file;
      const version = file.tableVersion(table);
      return (answer) => {
        if (version === null || file.sqlite !== sqlite || file.tableVersion(table) !== version) return answer;
        const kept = keptOf(sqlite, request);
        if (kept.version !== version) {
          kept.version = version;
          recent.delete(kept);
          return answer;
        }
        if (kept.list !== null) return kept.list;
        const text = JSON.stringify(answer);
        if (text.length > KEPT_LIST_LENGTH_MAX) return answer;
        const list = new ListText(text, answer.items.length);
        recent.set(kept, list);
        kept.list = list;
        return list;
      };
    },
  };
}
