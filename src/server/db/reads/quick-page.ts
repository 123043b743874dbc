import { receivedValues } from "../processes/sent-values.ts";
import type { Row, SqlValue, Statement } from "../types.ts";
import { createMarkedRows, type MarkedQuery } from "./marked-rows.ts";
import type { SentStatement } from "./requests.ts";

/** Reads the page of a search on the main thread. */
export type QuickPage = (query: (sql: string) => Statement<Row>, page: MarkedQuery) => unknown[][] | null;

/**
 * Creates the function that reads the page of a search on the main thread, as query processes read it; it returns null once the
 * statements have found more than `charsMax` characters of text.
 */
export function createQuickPage(charsMax: number): QuickPage {
  const tooLong = new Error(`more than ${charsMax} characters were found`);
  const markedRows = createMarkedRows();
  return (query, page) => {
    let left = charsMax;
    function* find({ sql, params }: SentStatement): Iterable<unknown[]> {
      const statement = query(sql);
      const names = statement.columnNames;
      for (const row of statement.iterate(...(receivedValues(params) as SqlValue[]))) {
        const values = names.map((name) => row[name]);
        for (const value of values) if (typeof value === "string") left -= value.length;
        if (left < 0) throw tooLong;
        yield values;
      }
    }
    try {
      return [...markedRows(find, page)];
    } catch (cause) {
      if (cause === tooLong) return null;
      throw cause;
    }
  };
}
