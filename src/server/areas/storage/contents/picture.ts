import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { AppError, codeOf, isMissing, tooLarge, unsupportedMediaType } from "../../../../kernel/errors.ts";
import { PIXELS_PER_MEGAPIXEL, THUMB_SOURCE_SCANS_MAX, THUMB_SOURCE_SIDE_MAX } from "../limits.ts";

export interface PictureSize {
  width: number;
  height: number;
}

/** Parses a size such as `200x100`; null for anything else. */
export function parseSize(text: string): PictureSize | null {
  const match = /^(\d{1,4})x(\d{1,4})$/.exec(text);
  return match === null ? null : { width: Number(match[1]), height: Number(match[2]) };
}

/**
 * Scales the picture to fit, never enlarging it, and returns WebP; for an animation, its first frame. First checks what
 * lets a small file take much memory and time: pixels, pixels per side, scans. Errors: 413 for too many of them, 415 for
 * what is not a picture.
 */
export async function scaled(source: Buffer, { width, height }: PictureSize, pixelsMax: number): Promise<Uint8Array> {
  const tooMany = () => {
    const megapixels = pixelsMax / PIXELS_PER_MEGAPIXEL;
    return tooLarge(`A picture must have at most ${megapixels} megapixels (${pixelsMax} pixels) for a thumbnail`);
  };
  try {
    const { file, orientation } = stillPicture(source);
    const image = () => new Bun.Image(file, { maxPixels: pixelsMax });
    const header = await image().metadata();
    if (header.width * header.height > pixelsMax) throw tooMany();
    requireDecodable(file, header);
    const whole = oriented(image(), orientation);
    return await whole.resize(width, height, { fit: "inside", withoutEnlargement: true }).webp().bytes();
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    const code = codeOf(cause);
    if (code === "ERR_IMAGE_TOO_MANY_PIXELS") throw tooMany();
    if (!code.startsWith("ERR_IMAGE")) throw cause;
    throw unsupportedMediaType("This file is not a picture that a thumbnail can be made of");
  }
}

/** Checks that decoding the picture stays within the limits. Errors: 413. */
function requireDecodable(file: Buffer, { width, height }: PictureSize): void {
  const side = Math.max(width, height);
  if (side > THUMB_SOURCE_SIDE_MAX) {
    throw tooLarge(`A picture must have at most ${THUMB_SOURCE_SIDE_MAX} pixels per side for a thumbnail, got ${side}`);
  }
  if (isJpeg(file) && countScans(file, THUMB_SOURCE_SCANS_MAX) > THUMB_SOURCE_SCANS_MAX) {
    throw tooLarge(`A JPEG must have at most ${THUMB_SOURCE_SCANS_MAX} scans for a thumbnail`);
  }
}

/** Whether the file is a WebP with the length that its header states; false for a truncated or missing file. */
export function isWholeWebp(path: string): boolean {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (cause) {
    if (isMissing(cause)) return false;
    throw cause;
  }
  try {
    const head = Buffer.alloc(RIFF_HEAD_BYTES);
    if (readSync(file, head) < RIFF_HEAD_BYTES) return false;
    return isWebp(head) && head.readUInt32LE(4) + 8 === fstatSync(file).size;
  } finally {
    closeSync(file);
  }
}

/** A named piece of a PNG or WebP file. */
interface Chunk {
  type: string;
  data: Buffer;
}

/** A file that the decoder accepts, and the orientation of its picture when the decoder does not know it. */
interface Decodable {
  file: Buffer;
  orientation: Orientation;
}

const PNG_SIGNATURE = "\x89PNG\r\n\x1a\n";
/** Length of the RIFF header: `RIFF`, the length of the rest, `WEBP`. */
const RIFF_HEAD_BYTES = 12;
const FRAME_HEAD_BYTES = 16;
/** Bit in the first byte of the VP8X chunk. */
const ANIMATION_FLAG = 0x02;
const ALPHA_FLAG = 0x10;

/**
 * Extracts the still picture of a file. An animated WebP, which the decoder refuses, yields its first frame. A PNG or WebP
 * with EXIF data, which the decoder ignores, yields its orientation too. Any other file is returned as it is.
 */
function stillPicture(file: Buffer): Decodable {
  if (file.toString("latin1", 0, PNG_SIGNATURE.length) === PNG_SIGNATURE) {
    return { file, orientation: orientationIn(pngChunks(file), "eXIf") };
  }
  if (!isWebp(file)) return { file, orientation: 1 };
  const orientation = orientationIn(webpChunks(file, RIFF_HEAD_BYTES), "EXIF");
  return { file: firstFrame(file) ?? file, orientation };
}

const isWebp = (file: Buffer): boolean =>
  file.toString("latin1", 0, 4) === "RIFF" && file.toString("latin1", 8, RIFF_HEAD_BYTES) === "WEBP";

function orientationIn(chunks: Iterable<Chunk>, type: string): Orientation {
  for (const chunk of chunks) if (chunk.type === type) return orientationOf(chunk.data);
  return 1;
}

function* pngChunks(file: Buffer): Generator<Chunk> {
  for (let at = PNG_SIGNATURE.length; at + 8 <= file.byteLength; ) {
    const end = at + 8 + file.readUInt32BE(at);
    yield { type: file.toString("latin1", at + 4, at + 8), data: file.subarray(at + 8, end) };
    at = end + 4; // Past the checksum.
  }
}

function* webpChunks(file: Buffer, start: number): Generator<Chunk> {
  for (let at = start; at + 8 <= file.byteLength; ) {
    const size = file.readUInt32LE(at + 4);
    yield { type: file.toString("latin1", at, at + 4), data: file.subarray(at + 8, at + 8 + size) };
    at += 8 + size + (size % 2);
  }
}

/** Extracts the first frame of an animated WebP as a file of its own; null when it is not animated or has no frame. */
function firstFrame(file: Buffer): Buffer | null {
  for (const { type, data } of webpChunks(file, RIFF_HEAD_BYTES)) {
    if (type === "VP8X" && ((data[0] ?? 0) & ANIMATION_FLAG) === 0) return null;
    if (type !== "ANMF") continue;
    if (data.byteLength < FRAME_HEAD_BYTES) return null;
    const extended = Buffer.alloc(10);
    extended[0] = ALPHA_FLAG;
    // Width and height, each minus one, in three bytes each, in the format of the frame header.
    data.copy(extended, 4, 6, 12);
    return riffOf([webpChunk("VP8X", extended), data.subarray(FRAME_HEAD_BYTES)]);
  }
  return null;
}

function webpChunk(type: string, data: Buffer): Buffer {
  const head = Buffer.alloc(8);
  head.write(type, "latin1");
  head.writeUInt32LE(data.byteLength, 4);
  return Buffer.concat([head, data]);
}

function riffOf(chunks: readonly Buffer[]): Buffer {
  const body = Buffer.concat([Buffer.from("WEBP", "latin1"), ...chunks]);
  return webpChunk("RIFF", body);
}

/** EXIF orientation: how a picture is turned before it is shown, from 1 (as it is) to 8. */
type Orientation = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8;

const ORIENTATION_TAG = 0x0112;
const SHORT = 3;
/** Length of one entry of a TIFF directory. */
const ENTRY_BYTES = 12;
/** Precedes the TIFF in JPEG, and in WebP files of some programs. */
const EXIF_PREFIX = "Exif\0\0";

/** Reads the orientation from EXIF data; 1 when it states none or is malformed. */
function orientationOf(exif: Buffer): Orientation {
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

/** Rotates and mirrors the picture by `orientation`. `Bun.Image` rotates first, then mirrors, and scales last. */
function oriented(image: Bun.Image, orientation: Orientation): Bun.Image {
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

const START_OF_IMAGE = 0xd8;
const END_OF_IMAGE = 0xd9;
const START_OF_SCAN = 0xda;

/** Whether a marker has no length: TEM, RST0 to RST7, SOI. */
const isBare = (marker: number): boolean => marker === 0x01 || (marker >= 0xd0 && marker <= START_OF_IMAGE);

const isJpeg = (file: Uint8Array): boolean => file[0] === 0xff && file[1] === START_OF_IMAGE;

/**
 * Counts the scans of a JPEG, up to `max` + 1. Each scan of a progressive picture passes over all of its pixels and takes a
 * few bytes, so the number of scans decides how long decoding takes.
 */
function countScans(file: Buffer, max: number): number {
  let count = 0;
  let at = file.indexOf(0xff, 2);
  while (at >= 0 && at + 1 < file.byteLength && count <= max) {
    const marker = file[at + 1] ?? 0;
    // 0xff00 is a data byte of a scan, and 0xffff is padding.
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
