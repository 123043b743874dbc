import { LRUCache } from "lru-cache";
import type { ListResult } from "../../../config/app/index.ts";
import type { DatabaseFile } from "../../../db/index.ts";
import { KEPT_LIST_LENGTH_MAX, KEPT_LISTS_LENGTH_MAX } from "../../limits.ts";
import { exceeds } from "../../write/stored-bytes.ts";
import type { ListRequest } from "../list-query.ts";
import { type Kept, ListText } from "./kept.ts";

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
  const recent = new LRUCache<Kept, ListText>({
    maxSize: KEPT_LISTS_LENGTH_MAX,
    sizeCalculation: ({ text }) => text.length,
    dispose: (_, kept) => {
      kept.list = null;
    },
  });

  return {
    get(file, table, request) {
      const { kept } = request;
      if (kept === null || kept.list === null || kept.sqlite !== file.sqlite) return null;
      if (kept.version !== file.tableVersion(table)) return null;
      return recent.get(kept) ?? null;
    },
    begin(file, table, request) {
      const { sqlite } = file;
      const version = file.tableVersion(table);
      return (answer) => {
        if (version === null || file.sqlite !== sqlite || file.tableVersion(table) !== version) return answer;
        const { kept } = request;
        if (kept === null || kept.sqlite !== sqlite || kept.version !== version) {
          if (kept !== null) recent.delete(kept);
          request.kept = { sqlite, version, list: null };
          return answer;
        }
        if (kept.list !== null) return kept.list;
        // A larger one is serialised in pieces.
        if (exceeds(answer.items, KEPT_LIST_LENGTH_MAX)) return answer;
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
