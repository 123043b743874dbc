import type { CommitMark } from "../writer/commit-gate.ts";

const TABLE_LEAF = 0x0d;
const CELL_COUNT_OFFSET = 3;
const FIRST_CELL_OFFSET = 8;
const COLUMNS = 6;
const TEXT_BASE = 13;
const VARINT_MAX_BYTES = 9;
const VARINT_BITS = 7;
const VARINT_MORE = 0x80;
/** Bytes of the integers of a record, by serial type. */
const INTEGER_BYTES = [0, 1, 2, 3, 4, 6, 8];
const TYPE_ZERO = 8;
const TYPE_ONE = 9;
const WORD_BYTES = 4;

/** Reads the commit row from the page of its table, which has this row only. null: the page is something else. */
export function decodeCommitRow(page: Uint8Array): CommitMark | null {
  const bytes = Buffer.from(page.buffer, page.byteOffset, page.byteLength);
  if (bytes[0] !== TABLE_LEAF || bytes.readUInt16BE(CELL_COUNT_OFFSET) !== 1) return null;
  let offset = bytes.readUInt16BE(FIRST_CELL_OFFSET);
  const varint = (): number => {
    let value = 0;
    for (let count = 0; count < VARINT_MAX_BYTES; count++) {
      const byte = bytes[offset++] ?? 0;
      value = value * (1 << VARINT_BITS) + (byte & (VARINT_MORE - 1));
      if (byte < VARINT_MORE) break;
    }
    return value;
  };
  varint();
  varint();
  const start = offset;
  let content = start + varint();
  const values: (number | string)[] = [];
  for (let column = 0; column < COLUMNS; column++) {
    const type = varint();
    if (type === TYPE_ZERO || type === TYPE_ONE) values.push(type - TYPE_ZERO);
    else if (type >= TEXT_BASE) {
      const length = (type - TEXT_BASE) / 2;
      values.push(bytes.toString("utf8", content, content + length));
      content += length;
    } else {
      const length = INTEGER_BYTES[type] ?? 0;
      values.push(integer(bytes, content, length));
      content += length;
    }
  }
  const [, number, nonce, at, place, file] = values;
  const isRow = [number, nonce, at, place].every((value) => typeof value === "number") && typeof file === "string";
  return isRow ? ({ number, nonce, at, place, file } as CommitMark) : null;
}

/** Reads a signed integer, which is exact as a number below 2^53. */
function integer(bytes: Buffer, offset: number, length: number): number {
  if (length === 0) return 0;
  if (length <= 6) return bytes.readIntBE(offset, length);
  return bytes.readInt32BE(offset) * 2 ** 32 + bytes.readUInt32BE(offset + WORD_BYTES);
}
