/** A file on the disk, to notice that something else has changed it. */
export interface FileStamp {
  mtimeMs: number;
  bytes: number;
}

/** Frames that a crash has left in a WAL, which the server moves into the file when it opens it. */
export interface LeftFrames {
  /** Id, number and nonce in the commit row, and the page with that row. */
  file: string;
  number: number;
  nonce: number;
  page: number;
  pageBytes: number;
  first: number;
  salts: number;
}

/** Record of an event, written by the server for the storing process, in the order of the events. Bytes of some follow their record. */
export type SpoolRecord =
  | ({ type: "left"; path: string } & LeftFrames)
  | {
      /** A database was opened. Bytes: the content with which it was made. */
      type: "opened";
      /** Path in the data directory without `.db`. */
      path: string;
      /** Id in the commit row, and the page with that row. */
      file: string;
      page: number;
      isNew: boolean;
      /** Whether the file may have been changed outside of its WAL while it was opened. */
      isRewritten: boolean;
      at: number;
      place: number;
      /** The file before and after it was opened; null: something changed it, or a crash left a WAL. */
      stamp: FileStamp | null;
    }
  /** Frames of a WAL follow. */
  | { type: "frames"; path: string; pageBytes: number; first: number; salts: number }
  /** Frames were lost: the file has to be compared as a whole. */
  | { type: "broken"; path: string }
  /** `place`: that of the opening. */
  | { type: "closed"; path: string; place: number; stamp: FileStamp | null }
  | { type: "removed"; path: string; at: number; place: number }
  /** The content of a file in a bucket is on the disk. */
  | { type: "content"; path: string };

/** A record about a database file. */
export type FileRecord = Exclude<SpoolRecord, { type: "content" }>;

const PREFIX_BYTES = 8;
const LENGTH_BYTES = 4;

/** Writes a record and its bytes: both lengths, JSON, bytes. */
export function encodeRecord(record: SpoolRecord, content: Uint8Array | null): Uint8Array[] {
  const text = Buffer.from(JSON.stringify(record));
  const head = Buffer.allocUnsafe(PREFIX_BYTES + text.byteLength);
  head.writeUInt32BE(text.byteLength, 0);
  head.writeUInt32BE(content?.byteLength ?? 0, LENGTH_BYTES);
  text.copy(head, PREFIX_BYTES);
  return content === null ? [head] : [head, content];
}

/** Bytes of records that are read at once: few enough for the processor's cache. */
const READ_BYTES = 256 * 1024;

/**
 * Reads the records of a file that the server has completed; content is valid until the next record. `read` fills a buffer with the bytes
 * from a place on.
 */
export function* decodeRecords(
  size: number,
  read: (into: Uint8Array, offset: number) => void,
): Generator<{ record: SpoolRecord; content: Uint8Array<ArrayBuffer> }> {
  // No buffers, of which `slice` makes no copy.
  let bytes = new Uint8Array(READ_BYTES);
  let [start, end] = [0, 0];
  /** Returns the bytes at a place, which is in what was read before, or follows it. */
  const at = (offset: number, length: number): Uint8Array<ArrayBuffer> => {
    if (offset + length > end) {
      if (length > bytes.byteLength) bytes = new Uint8Array(length);
      [start, end] = [offset, Math.min(size, offset + bytes.byteLength)];
      read(bytes.subarray(0, end - start), start);
    }
    return bytes.subarray(offset - start, offset - start + length);
  };
  for (let offset = 0; offset < size; ) {
    const prefix = at(offset, PREFIX_BYTES);
    const lengths = new DataView(prefix.buffer, prefix.byteOffset);
    const contentOffset = PREFIX_BYTES + lengths.getUint32(0);
    const whole = at(offset, contentOffset + lengths.getUint32(LENGTH_BYTES));
    const text = Buffer.from(whole.buffer, whole.byteOffset, whole.byteLength).toString(
      "utf8",
      PREFIX_BYTES,
      contentOffset,
    );
    // Written by the server of this directory.
    yield { record: JSON.parse(text) as SpoolRecord, content: whole.subarray(contentOffset) };
    offset += whole.byteLength;
  }
}
