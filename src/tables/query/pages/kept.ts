import type { Database } from "bun:sqlite";

/** A list as JSON. */
export class ListText {
  readonly text: string;
  readonly records: number;

  constructor(text: string, records: number) {
    this.text = text;
    this.records = records;
  }
}

/** The last answer to a request. */
export interface Kept {
  /** The connection of its file: instances share a request. */
  sqlite: Database;
  /** Of the table, when the list was last read: `list` is of this version. */
  version: number;
  list: ListText | null;
}
