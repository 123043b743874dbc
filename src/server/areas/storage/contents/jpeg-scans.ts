const START_OF_IMAGE = 0xd8;
const END_OF_IMAGE = 0xd9;
const START_OF_SCAN = 0xda;

/** Markers without a length: TEM, RST0 to RST7, SOI. */
const isBare = (marker: number): boolean => marker === 0x01 || (marker >= 0xd0 && marker <= START_OF_IMAGE);

export const isJpeg = (file: Uint8Array): boolean => file[0] === 0xff && file[1] === START_OF_IMAGE;

/**
 * The number of scans of a JPEG, counted up to `max` + 1. Each scan of a progressive picture passes over all of its pixels and
 * takes a few bytes, so their number decides how long it takes to decode.
 */
export function countScans(file: Buffer, max: number): number {
  let count = 0;
  let at = file.indexOf(0xff, 2);
  while (at >= 0 && at + 1 < file.byteLength && count <= max) {
    const marker = file[at + 1] ?? 0;
    // 0xff00 is a data byte of a scan, and 0xffff fills up.
    if (marker === END_OF_IMAGE) break;
    if (marker === 0xff || marker === 0 || isBare(marker)) {
      at = file.indexOf(0xff, at + (marker === 0xff ? 1 : 2));
      continue;
    }
    if (marker === START_OF_SCAN) count += 1;
    if (at + 4 > file.byteLength) break;
    at = file.indexOf(0xff, at + 2 + file.readUInt16BE(at + 2));
  }
  return count;
}
