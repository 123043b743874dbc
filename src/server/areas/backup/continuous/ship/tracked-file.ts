import type { FileStamp } from "../capture/records.ts";
import type { Position } from "../format/entries.ts";
import type { GapReason } from "../format/manifest.ts";
import type { Chain } from "./chain.ts";
import type { CopyFile, Scanned } from "./scan.ts";

/** A moment at which the server has handed over everything that was committed before. */
export interface Cut {
  at: number;
  place: number;
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
  /** A copy of a later state, to be stored once the chain has come there and has the same checksum. */
  copy: {
    number: number;
    checksum: string;
    file: CopyFile;
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
