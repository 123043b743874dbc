import type { Seen } from "../live/view.ts";
import type { TableWrite } from "../tables/local-writes.ts";

/** A write that waits, or whose answer does. */
export interface WaitingWrite {
  readonly write: TableWrite;
  readonly userId: string;
  /** When it was sent first; null: it was not. */
  readonly sentAt: number | null;
}

export interface SeenRecords extends Seen {
  readonly key: string;
  readonly at: number;
}

/** What outlives the page. Writes are numbered in order. */
export interface OfflineStorage {
  /** Whose it is; null: nobody's. */
  owner(): Promise<string | null>;
  setOwner(userId: string): Promise<void>;
  add(write: WaitingWrite): Promise<number>;
  put(serial: number, write: WaitingWrite): Promise<void>;
  remove(serial: number): Promise<void>;
  /** Those that wait, oldest first; at most `count`, by default all. */
  waiting(count?: number): Promise<[serial: number, write: WaitingWrite][]>;
  seen(key: string): Promise<SeenRecords | null>;
  setSeen(records: SeenRecords): Promise<void>;
  /** The keys of all, the oldest first. */
  seenKeys(): Promise<string[]>;
  forget(key: string): Promise<void>;
  clear(): Promise<void>;
  close(): void;
}
