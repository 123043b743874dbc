import type { FileStamp } from "../capture/records.ts";
import type { Position } from "../format/entries.ts";
import type { Covered, GapReason } from "../format/manifest.ts";
import type { Chain } from "./chain.ts";
import type { CopyFile, Scanned } from "./scan.ts";

/** A moment at which the server has handed over everything that was committed before. */
export type Cut = Covered;

/** Commits that a crash has left in a WAL, as far as they were read. */
export interface LeftCommits {
  /** The last of them. */
  number: number;
  nonce: number;
  /** The state before them. */
  since: Cut;
  frames: Tracked["frames"];
  /** Pages of the transaction whose last frame has not come yet. */
  open: Map<number, Uint8Array>;
}

export interface Tracked {
  path: string;
  id: string;
  /** null: nothing is known of the file. */
  chain: Chain | null;
  /**
   * - `ready`: entries follow the chain.
   * - `unknown`: the file has to be compared.
   * - `scanned`: it was, and what was found is stored with the next pass, whose sync covers it.
   */
  state: "ready" | "unknown" | "scanned";
  scanned: (Scanned & { cut: Cut }) | null;
  /** Whether the file was not there when it was to be compared. */
  isGone: boolean;
  reason: GapReason;
  /** Place of the opening; null: the file is closed. */
  openedPlace: number | null;
  lastOpenedPlace: number;
  stamp: FileStamp | null;
  /** Position of the next frames in the WAL; null: at its beginning, as the file was opened, or they are not known. */
  frames: { salts: number; next: number } | null;
  /** The state of the hashes that were kept last. */
  saved: { entry: string; stamp: FileStamp | null; at: number } | null;
  /** Commits that a crash has left in the WAL, while they are followed; null: there are none, or some are missing. */
  left: LeftCommits | null;
  /** State from which the commits lead on that a crash had left, until what they have led to is confirmed; null: it is. */
  doubtedSince: Cut | null;
  /** Content that was read, to be compared once the chain has come there. */
  copy: {
    number: number;
    checksum: string;
    /** The copy to be stored then; null: it was read only to be compared. */
    file: CopyFile | null;
    position: Position;
    pages: number;
    isEqual: boolean;
  } | null;
}

/** Whether both are the same closed file. */
export const isSame = (one: FileStamp | null, other: FileStamp | null): boolean =>
  one !== null && other !== null && one.mtimeMs === other.mtimeMs && one.bytes === other.bytes;

/** Whether frames follow those before them: each WAL is read from its beginning. */
export const follows = (known: Tracked["frames"], { salts, first }: { salts: number; first: number }): boolean =>
  first === (known?.salts === salts ? known.next : 0);

const PAGE_BYTES_OFFSET = 16;
/** The header stores the largest size of a page, 65536, as 1. */
const LARGEST_PAGE_BYTES = 65_536;

/** Reads the size of pages from the first of them. */
export function pageBytesOf(header: Uint8Array): number {
  const stored = new DataView(header.buffer, header.byteOffset, header.byteLength).getUint16(PAGE_BYTES_OFFSET);
  return stored === 1 ? LARGEST_PAGE_BYTES : stored;
}
