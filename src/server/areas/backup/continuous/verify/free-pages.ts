const FIRST_TRUNK_OFFSET = 32;
const NUMBER_BYTES = 4;
/** A trunk begins with the number of the next one and the count of its leaves. */
const TRUNK_HEAD_BYTES = 2 * NUMBER_BYTES;

/** Lists the pages of the free list, whose content SQLite does not write. `read` returns a page. */
export function freePagesOf(count: number, read: (page: number) => Uint8Array): Set<number> {
  const free = new Set<number>();
  const numberIn = (bytes: Uint8Array, offset: number): number =>
    new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(offset);
  let trunk = numberIn(read(1), FIRST_TRUNK_OFFSET);
  while (trunk !== 0 && trunk <= count && !free.has(trunk)) {
    free.add(trunk);
    const page = read(trunk);
    const leaves = Math.min(numberIn(page, NUMBER_BYTES), page.byteLength / NUMBER_BYTES - 2);
    for (let leaf = 0; leaf < leaves; leaf++) free.add(numberIn(page, TRUNK_HEAD_BYTES + leaf * NUMBER_BYTES));
    trunk = numberIn(page, 0);
  }
  return free;
}
