import type { FileState } from "../entries/content.ts";
import type { LogEntry, Place } from "../protocol/statements.ts";

/** A file that was fetched from the object store. */
export interface FetchedFile {
  /** Path in the data directory. */
  path: string;
  /** Place of the log that it has reached, at least. */
  after: Place;
  /** Position that it has not gone beyond. */
  reached: number;
}

/** A file of the object store, in the state that its copy and what follows it lead to. */
export interface ListedFile extends FileState {
  id: string;
  path: string;
}

/** Fetches files as the log had them at a place. Errors of all: the store or the log cannot be reached, or is another one. */
export interface FileSource {
  /** Returns the files of the object store. */
  list(): Promise<readonly ListedFile[]>;
  /** Writes the content of a file in the object store to `target`. null: there is none, and the log has it from its creation on. */
  fetch(file: string, target: string): Promise<FetchedFile | null>;
  /** Returns the entries of the log that are about the file, up to a place; `after` null: from the begin of the log. */
  entries(file: string, range: { after: Place | null; upTo: Place }): AsyncIterable<LogEntry>;
}
