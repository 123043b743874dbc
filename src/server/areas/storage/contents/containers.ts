import { type Orientation, orientationOf } from "./orientation.ts";

/** A named piece of a PNG or WebP file. */
interface Chunk {
  type: string;
  data: Buffer;
}

/** A file that the decoder takes, and how its picture is turned where the decoder does not know. */
export interface Decodable {
  file: Buffer;
  orientation: Orientation;
}

const PNG_SIGNATURE = "\x89PNG\r\n\x1a\n";
const RIFF_HEAD_BYTES = 12;
const FRAME_HEAD_BYTES = 16;
/** Of the first byte of VP8X. */
const ANIMATION_FLAG = 0x02;
const ALPHA_FLAG = 0x10;

/**
 * The still picture in a file: of an animated WebP, which the decoder refuses, the first frame; of a PNG or WebP with EXIF data, which
 * the decoder ignores, with its orientation. Any other file as it is.
 */
export function stillPicture(file: Buffer): Decodable {
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
    at = end + 4; // Its checksum.
  }
}

function* webpChunks(file: Buffer, start: number): Generator<Chunk> {
  for (let at = start; at + 8 <= file.byteLength; ) {
    const size = file.readUInt32LE(at + 4);
    yield { type: file.toString("latin1", at, at + 4), data: file.subarray(at + 8, at + 8 + size) };
    at += 8 + size + (size % 2);
  }
}

/** The first frame of an animated WebP as a file of its own; null: it is not animated, or has no frame. */
function firstFrame(file: Buffer): Buffer | null {
  for (const { type, data } of webpChunks(file, RIFF_HEAD_BYTES)) {
    if (type === "VP8X" && ((data[0] ?? 0) & ANIMATION_FLAG) === 0) return null;
    if (type !== "ANMF") continue;
    if (data.byteLength < FRAME_HEAD_BYTES) return null;
    const extended = Buffer.alloc(10);
    extended[0] = ALPHA_FLAG;
    // Width and height, each less one, in three bytes each, as they stand in the frame's head.
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
