import type { Millis } from "../../kernel/clock.ts";
import type { Transaction } from "../db/index.ts";

/** The members of an account that its record in the table of users copies. */
export interface AccountMembers {
  id: string;
  /** The account's `seq`, which tells accounts apart that have had one id after each other. */
  birth: number;
  displayName: string | null;
  avatarUrl: string | null;
  isAnonymous: boolean;
  email: string | null;
  /** Whether everybody may see the address. */
  isEmailPublic: boolean;
  createdAt: Millis;
}

/** Counters in the file of the records: its commits of them so far, and the highest mark of system.db that these have copied. */
export interface RecordsSeen {
  count: number;
  mark: number;
}

/** One commit of the file with the records. */
export interface RecordsTx {
  /** Inserts or changes the record of an account. A record of another birth is replaced. */
  put(account: AccountMembers): void;
  /** Deletes the record, if there is one. */
  remove(id: string): void;
  /** Counts a commit that copies up to this mark, and returns the count. */
  heard(mark: number): number;
}

/** The records of the accounts, in the file of a namespace. */
export interface AccountRecords {
  /** Resolves when the file can be read: one of 0.2 may have to be rewritten first. */
  ready(): Promise<void>;
  write<T>(work: (tx: RecordsTx) => T): Promise<T>;
  seen(): RecordsSeen;
  /** Whether the record is as the account: there is none for null. */
  isCopy(id: string, account: AccountMembers | null): boolean;
  /** The ids of at most `limit` records after `after`, in order. */
  ids(page: { after: string; limit: number }): string[];
}

/** Notes accounts whose records have to follow them. */
export interface AccountMarks {
  /** Marks an account that this transaction creates, changes or deletes. */
  mark(tx: Transaction, id: string): void;
  /** Resolves when the records of marked accounts are on disk. */
  copied(ids: readonly string[]): Promise<void>;
}
