export const FRAME_HEADER_BYTES = 24;
const SIZE_OFFSET = 4;

/** One transaction in a WAL. */
export interface CommitFrames {
  /** Last version of each page that it has changed. */
  pages: ReadonlyMap<number, Uint8Array>;
  /** Pages of the file after it. */
  count: number;
}

/** Separates frames into transactions. The pages of one that is not complete are kept in `open`. */
export function* commitsOf(
  content: Uint8Array,
  pageBytes: number,
  open: Map<number, Uint8Array>,
): Generator<CommitFrames> {
  const view = new DataView(content.buffer, content.byteOffset, content.byteLength);
  const frameBytes = FRAME_HEADER_BYTES + pageBytes;
  for (let offset = 0; offset + frameBytes <= content.byteLength; offset += frameBytes) {
    open.set(view.getUint32(offset), content.subarray(offset + FRAME_HEADER_BYTES, offset + frameBytes));
    const count = view.getUint32(offset + SIZE_OFFSET);
    if (count === 0) continue;
    yield { pages: new Map(open), count };
    open.clear();
  }
  // Whoever has read the frames reads others into the same memory.
  for (const [page, version] of open) if (version.buffer === content.buffer) open.set(page, new Uint8Array(version));
}
