/** How a picture is turned before it is shown: EXIF's 1 (as it is) to 8. */
export type Orientation = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8;

const ORIENTATION_TAG = 0x0112;
const SHORT = 3;
/** Bytes of one entry of a directory of TIFF. */
const ENTRY_BYTES = 12;
/** Precedes the TIFF in JPEG, and in WebP files of some programs. */
const EXIF_PREFIX = "Exif\0\0";

/** The orientation that EXIF data says; 1 where it says none, or is malformed. */
export function orientationOf(exif: Buffer): Orientation {
  const hasPrefix = exif.toString("latin1", 0, EXIF_PREFIX.length) === EXIF_PREFIX;
  const tiff = hasPrefix ? exif.subarray(EXIF_PREFIX.length) : exif;
  const order = tiff.toString("latin1", 0, 2);
  if (order !== "II" && order !== "MM") return 1;
  const isLittle = order === "II";
  const short = (at: number): number => {
    if (at + 2 > tiff.byteLength) return 0;
    return isLittle ? tiff.readUInt16LE(at) : tiff.readUInt16BE(at);
  };
  if (tiff.byteLength < 8) return 1;
  const directory = isLittle ? tiff.readUInt32LE(4) : tiff.readUInt32BE(4);
  const count = short(directory);
  for (let index = 0; index < count; index++) {
    const entry = directory + 2 + index * ENTRY_BYTES;
    if (short(entry) !== ORIENTATION_TAG) continue;
    const value = short(entry + 8);
    return short(entry + 2) === SHORT && isOrientation(value) ? value : 1;
  }
  return 1;
}

const isOrientation = (value: number): value is Orientation => value >= 1 && value <= 8;

/** Turns and mirrors the picture as `orientation` says. `Bun.Image` rotates first, mirrors then, and scales last. */
export function oriented(image: Bun.Image, orientation: Orientation): Bun.Image {
  switch (orientation) {
    case 1:
      return image;
    case 2:
      return image.flop();
    case 3:
      return image.rotate(180);
    case 4:
      return image.flip();
    case 5:
      return image.rotate(90).flop();
    case 6:
      return image.rotate(90);
    case 7:
      return image.rotate(90).flip();
    case 8:
      return image.rotate(270);
  }
}
