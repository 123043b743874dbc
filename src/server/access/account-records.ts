import type { Millis } from "../../kernel/clock.ts";
import type { Actor, Transaction } from "../db/index.ts";

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

/** Members of an account that an update of its record may change. */
export type ProfileChanges = { [Name in "displayName" | "avatarUrl"]?: string | null };

/** A change of an account that an update of its record has asked for, with a number that grows. */
export interface AskedChange {
  seq: number;
  id: string;
  birth: number;
  changes: ProfileChanges;
  /** The account that becomes part of this one, and goes. */
  merge?: AskedMerge;
}

/** An account that becomes part of another one. Its records have moved when this is asked for. */
export interface AskedMerge {
  from: string;
  /** The birth of `from`. */
  birth: number;
  by: Actor;
}

/** Counters in the file of the records: its commits of them so far, and the highest mark of system.db that these have copied. */
export interface RecordsSeen {
  count: number;
  mark: number;
}

/** One commit of the file with the records. */
export interface RecordsTx {
  /**
   * Inserts or changes the record of an account. A record of another birth is replaced. false: nothing is done, because other records
   * refer to that one.
   */
  put(account: AccountMembers): boolean;
  /** Deletes the record, if there is one. false: nothing is done, because other records refer to it. */
  remove(id: string): boolean;
  /** Takes off the changes up to this number, which the accounts have. */
  settleAsked(seq: number): void;
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
  /** Returns the first changes of accounts that updates of records have asked for, in their order. */
  asked(limit: number): AskedChange[];
  /** Returns the number of the last one that there ever was; 0: there was none. */
  lastAsked(): number;
  /** Whether a record has to go for this account, or for none, and other records refer to it: `clear` comes first. */
  isReferred(id: string, account: () => AccountMembers | null): boolean;
  /** Whether a record is held. */
  isHeld(id: string): boolean;
  /**
   * Makes all that refers to `from` refer to `into`, and asks for the accounts to be merged, in one commit. Returns how many records
   * that moves, by `namespace/table`. A preview is undone. Errors: 409, and nothing has moved.
   */
  merge(asked: AskedMerge & { into: string }, options: { isPreview: boolean }): Promise<Record<string, number>>;
  /** Counts the records of other files that refer to a record, in instances too, by `namespace/table`. */
  countFar(id: string, signal: AbortSignal): Promise<Record<string, number>>;
  /** Keeps others from beginning to refer to a record that goes, until the returned function is called. */
  hold(id: string): () => void;
  /** Errors: 409 that names the table whose records restrict the deletion. */
  refuseRestricted(id: string): Promise<void>;
  /**
   * Ends the references to a record in steps, which may be interrupted and begun again. `note`: gets the `namespace/table` of each record
   * that was changed or deleted. Errors: 409 for one that restricts.
   */
  clear(id: string, signal: AbortSignal, note?: (place: string) => void): Promise<void>;
}

/** Notes accounts whose records have to follow them. */
export interface AccountMarks {
  /** Marks an account that this transaction creates, changes or deletes. */
  mark(tx: Transaction, id: string): void;
  /** Resolves when the records of marked accounts are on disk. */
  copied(ids: readonly string[]): Promise<void>;
  /**
   * Runs `work`, which deletes an account and waits for `copied`. Nothing begins to refer to its record meanwhile. Returns how many
   * records were changed or deleted because they referred to it, by `namespace/table`. Errors: 409 where a reference restricts the
   * deletion, before `work`.
   */
  deleting(id: string, work: () => Promise<unknown>): Promise<Record<string, number>>;
  /**
   * Moves what refers to `from` to `into`, and merges the accounts by `AccountRecords.asked`. Resolves when `from` is gone, with the
   * number of records by table, those of other files as they were before it; null: there is no table of users, and nothing is done. Errors: 409, and nothing has moved.
   */
  merge(asked: AskedMerge & { into: string }, options: { isPreview: boolean }): Promise<Record<string, number> | null>;
}
