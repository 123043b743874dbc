import type { Database } from "bun:sqlite";
import type { OrNothing } from "../../../kernel/maybe-promise.ts";
import type { CommitGate, CommitName } from "../writer/commit-gate.ts";
import type { Durable } from "../writer/durability.ts";

/** Frames of a WAL: page versions that commits have appended, each behind a header of 24 bytes. */
export interface WalFrames {
  pageBytes: number;
  /** Number of the first frame, from 0, in the WAL that has these salts. */
  first: number;
  salts: number;
  /** Valid during the call: the next frames are read into the same memory. */
  content: Uint8Array;
}

/** Content of a file whose WAL a crash has left. */
export interface LeftFacts {
  /** Id, number and nonce in the commit row. */
  file: string;
  number: number;
  nonce: number;
  /** Page of the commit row. */
  page: number;
}

/** A file that has been opened. */
interface OpenedFacts {
  /** Id in the file's commit row. */
  file: string;
  /** Page of the commit row. */
  page: number;
  /** The initial content of a file that was made now; null for any other. */
  created: Uint8Array | null;
  /** Whether the file may have been changed outside of its WAL while it was opened. */
  isRewritten: boolean;
  /** The commit that it held before it was opened; number 0: none. */
  before: CommitName;
  /** Returns the whole content as it is now. */
  whole: () => Uint8Array;
}

/** Takes the commits of one file while it is open. No method throws. */
export interface FileCapture {
  /** Takes commits that a crash has left in the WAL, before the file counts as opened. */
  left(facts: LeftFacts, frames: WalFrames): void;
  /** Returns whether it has taken the whole content, with the frames that are there now. */
  opened(facts: OpenedFacts): OrNothing<boolean>;
  frames(frames: WalFrames): void;
  /** Takes note that frames could not be read: the file has to be compared as a whole. */
  broken(): void;
  /** Takes note that the file was closed, with its WAL moved into it. */
  closed(): void;
}

/** Takes the commits of a database that another component keeps open, and whose transactions other processes make. */
export interface KeptCommits {
  /** Whether the content is wanted with which a new file was made. */
  readonly wantsContent: boolean;
  /** Takes what a crash has left in the WAL, and moves it into the file, before anything is committed. Errors: the sync fails. */
  moveLeft(sqlite: Database): void;
  /** Begins to take commits, once the gate is open and the WAL is there. Errors: it cannot be opened. */
  opened(sqlite: Database, gate: CommitGate, created: Uint8Array | null): void;
  /** Takes note that the database has been closed. */
  closed(): void;
}

/** Takes the commits of all files. No method throws. */
export interface CommitCapture {
  /** Waits in place of a sync, where commits are kept elsewhere than on this disk. Absent: a sync makes them durable. */
  durable?: Durable;
  /** Looks at a file before it is opened. */
  opening(path: string): FileCapture;
  /** Takes note that a closed file is about to be removed. */
  removing(path: string): void;
}
