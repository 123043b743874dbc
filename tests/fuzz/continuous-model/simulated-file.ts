import type { FileStamp, LeftFrames } from "../../../src/server/areas/backup/continuous/capture/records.ts";
import { FRAME_HEADER_BYTES } from "../../../src/server/db/capture/commit-frames.ts";
import type { CommitMark } from "../../../src/server/db/writer/commit-gate.ts";

export const PAGE_BYTES = 512;
/** Page of the commit row; page 1 has the header. */
export const COMMIT_PAGE = 2;
const PAGE_BYTES_OFFSET = 16;

/** Pages of a database. Neither the list nor a page is ever changed: a commit makes another list. */
export type Pages = readonly Uint8Array<ArrayBuffer>[];

/** A database file of the model. */
export interface SimulatedFile {
  path: string;
  id: string;
  row: CommitMark;
  pages: Pages;
  /** null: the file is closed. */
  opened: { place: number; nonce: number } | null;
  wal: { salts: number; frames: number; commits: { row: CommitMark; frames: Uint8Array<ArrayBuffer> }[] };
  /** Whether a kill has left frames in the WAL. */
  hasLeftWal: boolean;
  stamp: FileStamp;
  /** State on the disk; null: the file is not there. */
  durable: { row: CommitMark; pages: Pages; id: string; events: number } | null;
}

/** Makes the page that SQLite makes of a commit row. */
export function commitPageOf({ number, nonce, at, place, file }: CommitMark): Uint8Array<ArrayBuffer> {
  const page = Buffer.alloc(PAGE_BYTES);
  const text = Buffer.from(file);
  const head = Buffer.from([7, 0, 6, 6, 6, 6, 13 + 2 * text.byteLength]);
  const integers = Buffer.alloc(32);
  for (const [index, value] of [number, nonce, at, place].entries()) integers.writeBigInt64BE(BigInt(value), index * 8);
  const record = Buffer.concat([head, integers, text]);
  const cell = Buffer.concat([Buffer.from([record.byteLength, 0]), record]);
  page[0] = 0x0d;
  page.writeUInt16BE(1, 3);
  page.writeUInt16BE(PAGE_BYTES - cell.byteLength, 8);
  cell.copy(page, PAGE_BYTES - cell.byteLength);
  return new Uint8Array(page);
}

export function headerPage(): Uint8Array<ArrayBuffer> {
  const page = Buffer.alloc(PAGE_BYTES);
  page.write("SQLite format 3\0");
  page.writeUInt16BE(PAGE_BYTES, PAGE_BYTES_OFFSET);
  return new Uint8Array(page);
}

/** Makes the frames of one commit. */
export function framesOf(changed: readonly number[], pages: Pages): Uint8Array<ArrayBuffer> {
  const frameBytes = FRAME_HEADER_BYTES + PAGE_BYTES;
  const frames = new Uint8Array(changed.length * frameBytes);
  const view = new DataView(frames.buffer);
  for (const [index, number] of changed.entries()) {
    view.setUint32(index * frameBytes, number);
    view.setUint32(index * frameBytes + 4, index === changed.length - 1 ? pages.length : 0);
    frames.set(pages[number - 1] ?? new Uint8Array(PAGE_BYTES), index * frameBytes + FRAME_HEADER_BYTES);
  }
  return frames;
}

export const joined = (pages: Pages): Uint8Array<ArrayBuffer> => new Uint8Array(Buffer.concat(pages));

export const areEqual = (one: Pages, other: Pages): boolean =>
  one.length === other.length && one.every((page, index) => Buffer.compare(page, other[index] ?? page) === 0);

/** Makes an empty WAL. */
export const emptyWal = (salts: number): SimulatedFile["wal"] => ({ salts, frames: 0, commits: [] });

/** Takes the commits out of a WAL that a power cut has taken. */
export function cutWal(file: SimulatedFile): void {
  const { wal, row } = file;
  wal.commits = wal.commits.filter((commit) => commit.row.place <= row.place);
  wal.frames = wal.commits.reduce((sum, { frames }) => sum + frames.byteLength / FRAME_BYTES, 0);
}

const FRAME_BYTES = FRAME_HEADER_BYTES + PAGE_BYTES;
const FRAMES_AT_ONCE = 4;

/** Reads what a kill has left in a WAL, in pieces. */
export function leftFrames({
  id: file,
  row,
  wal,
}: SimulatedFile): { left: LeftFrames; content: Uint8Array<ArrayBuffer> }[] {
  const all = new Uint8Array(Buffer.concat(wal.commits.map(({ frames }) => frames)));
  const pieces: { left: LeftFrames; content: Uint8Array<ArrayBuffer> }[] = [];
  const { number, nonce } = row;
  for (let first = 0; first < wal.frames; first += FRAMES_AT_ONCE) {
    const left = { file, number, nonce, page: COMMIT_PAGE, pageBytes: PAGE_BYTES, first, salts: wal.salts };
    pieces.push({ left, content: all.slice(first * FRAME_BYTES, (first + FRAMES_AT_ONCE) * FRAME_BYTES) });
  }
  return pieces;
}
