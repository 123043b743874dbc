import { BackupError } from "../../types.ts";
import { readContainer, type Span } from "./container.ts";
import type { Position } from "./entries.ts";
import type { MergedFacts } from "./merged.ts";

export const FORMAT = "platform-continuous";
export const FORMAT_VERSION = 1;
export const MANIFEST_KEY = "manifest";

/** Why moments of a file are missing. */
export type GapReason = "full" | "store_ahead" | "replaced" | "unread";

export interface Gap {
  /** Id of the file. */
  id: string;
  file: string;
  from: number;
  to: number;
  fromPlace: number;
  toPlace: number;
  reason: GapReason;
}

/** A place in the log of a cluster: history, position and content, and the epoch of the owner who has stored it. */
export interface LogPlace {
  history: number;
  position: number;
  nonce: string;
  epoch: number;
}

/** A moment up to which every file is in the store. */
export interface Covered {
  at: number;
  place: number;
  /** Place of a cluster's log that the files have reached, at least. Missing: the server is alone. */
  log?: LogPlace;
}

/** A copy of a file, from which later entries lead on. */
export interface FullCopy extends Position {
  /** Key of the object: one of its own, or the segment that has the copy as an entry. */
  key: string;
  sha256: string;
  isSegment: boolean;
  /** Bytes of the copy in the store. */
  bytes: number;
}

/** A database file, from its making to its removal. */
export interface StoredFile {
  /** Id of the file, whatever its name. */
  id: string;
  /** Ids that it had before. */
  formerIds: string[];
  /** Path in the data directory without `.db`. */
  path: string;
  pageBytes: number;
  fulls: FullCopy[];
  /** The last state that is in the store, with its checksum, and the hash of its entry. */
  last: Position & { pages: number; checksum: string; entry: string };
  /** Bytes of entries since the last full copy. */
  entryBytes: number;
  /** Bytes of all objects and entries in the store. */
  bytes: number;
  removed: { at: number; place: number } | null;
}

/** A version of a file that is no database; sha256 null: it was removed. */
export interface PlainVersion {
  path: string;
  sha256: string | null;
  at: number;
  place: number;
}

/** Entry of the manifest for a segment. */
export interface SegmentFacts {
  counter: number;
  key: string;
  sha256: string;
  bytes: number;
  /** Times of its first and its last commit, and the last place in the order of commits. 0: it has none. */
  from: number;
  to: number;
  place: number;
  /** The first place of its entries. */
  firstPlace: number;
  /** Ids of the files in it, each with the last number of its entries. */
  files: [id: string, number: number][];
}

/** Segments that are listed in an object of their own. */
export interface SegmentIndex {
  key: string;
  sha256: string;
  bytes: number;
  from: number;
  to: number;
  /** The last place, and the first and the last counter, of its segments. */
  place: number;
  first: number;
  last: number;
}

/** The entries of one file in a segment. */
export interface SegmentPart extends Span {
  id: string;
  path: string;
  /** Bytes of the block when it is decompressed. */
  size: number;
  entries: (Position & { kind: string; after: string; hash: string; pages: number; pageBytes: number })[];
}

/** The description of a segment. */
export interface SegmentDescription {
  format: typeof FORMAT;
  version: number;
  counter: number;
  incarnation: string;
  /** SHA-256 of the segment before; null: it is the first. */
  previous: string | null;
  from: number;
  to: number;
  place: number;
  parts: SegmentPart[];
  /** Full copies that have objects of their own and count from here on. */
  copies: {
    id: string;
    path: string;
    pageBytes: number;
    pages: number;
    checksum: string;
    /** Whether the entries that follow lead on from it; otherwise it is of a state that entries had made. */
    isBase: boolean;
    copy: FullCopy;
  }[];
  /** Files that have got their id with their first commit, before which they had another one. */
  renamed: { id: string; to: string }[];
  removed: { id: string; path: string; at: number; place: number }[];
  plain: PlainVersion[];
  gaps: Gap[];
  /** The last moment up to which every file is in the store. Missing: it was written by an earlier version. */
  covered?: Covered | null;
  /** Contents of buckets that are not in the store yet. */
  missing: string[];
}

/** The description of a full copy that is an object of its own. */
export interface CopyDescription extends Position {
  format: typeof FORMAT;
  version: number;
  id: string;
  path: string;
  pageBytes: number;
  pages: number;
  checksum: string;
  /** Compressed blocks of `pagesPerBlock` pages. */
  pagesPerBlock: number;
  blocks: Span[];
}

export interface Manifest {
  format: typeof FORMAT;
  version: number;
  /** Version of the program that wrote it. */
  platform: string;
  incarnation: string;
  writtenAt: number;
  keepDays: number;
  /** The first moment at which every file has a copy; null: not yet. */
  from: number | null;
  /** The first place of that moment. */
  fromPlace: number;
  files: StoredFile[];
  indexes: SegmentIndex[];
  /** The last segment of the indexes. */
  lastIndexed: { counter: number; sha256: string | null };
  /** The segments behind those of the indexes, in order. */
  segments: SegmentFacts[];
  /** Objects that stand for several segments each. */
  merged: MergedFacts[];
  plain: PlainVersion[];
  gaps: Gap[];
  /** The value of the last segment. */
  covered?: Covered | null;
  missing: string[];
  /** Keys of contents that the server has removed, with the time at which that was noticed. */
  gone: [key: string, at: number][];
  verifiedAt: number | null;
}

export interface SegmentIndexDescription {
  format: typeof FORMAT;
  version: number;
  segments: SegmentFacts[];
}

const COUNTER_DIGITS = 12;
const padded = (counter: number): string => String(counter).padStart(COUNTER_DIGITS, "0");

export const segmentKey = (counter: number, incarnation: string): string =>
  `segments/${padded(counter)}-${incarnation}`;
export const indexKey = (counter: number, incarnation: string): string => `indexes/${padded(counter)}-${incarnation}`;
export const mergedKey = ({ first, last }: { first: number; last: number }, incarnation: string): string =>
  `merged/${padded(first)}-${padded(last)}-${incarnation}`;
export const copyKey = (id: string, counter: number, incarnation: string): string =>
  `copies/${padded(counter)}-${incarnation}-${id}`;
export const plainKey = (sha256: string): string => `plain/${sha256}`;
/** `path`: that of the content in the data directory, `storage/objects/xx/ID`. */
export const contentKey = (path: string, sha256: string): string =>
  `contents/${path.slice("storage/".length)}-${sha256}`;

/** Reads the manifest. Errors: BackupError if it is none, damaged, or of a later version. */
export function readManifest(name: string, bytes: Uint8Array<ArrayBuffer>): Manifest {
  const { description } = readContainer<Manifest>(name, bytes);
  if (description.format !== FORMAT) throw new BackupError(`${name} is no continuous backup`);
  requireVersion(name, description);
  return description;
}

/** Errors: BackupError for a version that this program does not know. */
export function requireVersion(name: string, { version }: { version: number }): void {
  if (version === FORMAT_VERSION) return;
  throw new BackupError(`${name} was made by a later version of Platform (its format is ${version})`);
}
