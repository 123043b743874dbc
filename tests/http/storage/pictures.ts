import { createDeflate, deflateSync } from "node:zlib";

type Bytes = Uint8Array<ArrayBuffer>;

const PNG_SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

function pngChunk(type: string, bytes: Uint8Array): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), bytes]);
  const framed = Buffer.alloc(body.byteLength + 8);
  framed.writeUInt32BE(bytes.byteLength, 0);
  body.copy(framed, 4);
  framed.writeUInt32BE(Bun.hash.crc32(body), body.byteLength + 4);
  return framed;
}

interface PngHead {
  width: number;
  height: number;
  bitDepth?: number;
  /** 0: grey, 2: RGB, 6: RGBA. */
  colorType?: number;
}

/** A PNG of rows that are compressed already; `extra` are chunks before the pixels. */
function pngOf({ width, height, bitDepth = 8, colorType = 2 }: PngHead, rows: Uint8Array, extra: Buffer[] = []): Bytes {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([bitDepth, colorType, 0, 0, 0], 8);
  const chunks = [pngChunk("IHDR", header), ...extra, pngChunk("IDAT", rows), pngChunk("IEND", Buffer.alloc(0))];
  return new Uint8Array(Buffer.concat([PNG_SIGNATURE, ...chunks]));
}

/** A black PNG; `claim` writes another size into its header than its pixels have. */
export const png = (width: number, height: number, claim = { width, height }): Bytes =>
  pngOf(claim, deflateSync(Buffer.alloc(height * (1 + width * 3))));

/** A grey PNG of one pixel's width. */
export const pngColumn = (height: number): Bytes =>
  pngOf({ width: 1, height, colorType: 0 }, deflateSync(Buffer.alloc(height * 2)));

/** Levels of grey, row by row. */
export type Pixels = readonly (readonly number[])[];

/** A PNG of these pixels; `exif` is stored beside them. */
export function pngOfPixels(pixels: Pixels, exif?: Buffer): Bytes {
  const rows = Buffer.concat(pixels.map((row) => Buffer.from([0, ...row])));
  const head = { width: pixels[0]?.length ?? 0, height: pixels.length, colorType: 0 };
  return pngOf(head, deflateSync(rows), exif === undefined ? [] : [pngChunk("eXIf", exif)]);
}

/** EXIF data with an orientation alone. */
export function exifOf(orientation: number, order: "II" | "MM"): Buffer {
  const bytes = Buffer.alloc(26);
  bytes.write(order, "latin1");
  const short = (value: number, at: number) =>
    order === "II" ? bytes.writeUInt16LE(value, at) : bytes.writeUInt16BE(value, at);
  const long = (value: number, at: number) =>
    order === "II" ? bytes.writeUInt32LE(value, at) : bytes.writeUInt32BE(value, at);
  short(42, 2);
  long(8, 4);
  short(1, 8);
  short(0x0112, 10);
  short(3, 12);
  long(1, 14);
  short(orientation, 18);
  return bytes;
}

/** The pixels as a program shows them that follows `orientation`, by the table of EXIF. */
export function turned(pixels: Pixels, orientation: number): Pixels {
  const transposed = (of: Pixels): Pixels => (of[0] ?? []).map((_, x) => of.map((row) => row[x] ?? 0));
  const mirrored = (of: Pixels): Pixels => of.map((row) => row.toReversed());
  const flipped = (of: Pixels): Pixels => of.toReversed();
  switch (orientation) {
    case 2:
      return mirrored(pixels);
    case 3:
      return mirrored(flipped(pixels));
    case 4:
      return flipped(pixels);
    case 5:
      return transposed(pixels);
    case 6:
      return mirrored(transposed(pixels));
    case 7:
      return mirrored(flipped(transposed(pixels)));
    case 8:
      return flipped(transposed(pixels));
    default:
      return pixels;
  }
}

/**
 * A PNG of 32 megapixels that takes seconds: 16 bits a channel, rows predicted by Paeth's filter from random ones. A row is as
 * long as a compressor looks back, so the same one again takes some hundred bytes.
 */
export async function slowPng(): Promise<Bytes> {
  const [width, height] = [4_000, 8_388];
  const row = Buffer.from(crypto.getRandomValues(new Uint8Array(1 + width * 8)));
  row[0] = 4;
  const deflate = createDeflate({ level: 6 });
  const parts: Buffer[] = [];
  deflate.on("data", (part: Buffer) => parts.push(part));
  const ended = new Promise((resolve) => deflate.on("end", resolve));
  for (let y = 0; y < height; y++) {
    if (!deflate.write(row)) await new Promise((resolve) => deflate.once("drain", resolve));
  }
  deflate.end();
  await ended;
  return pngOf({ width, height, bitDepth: 16, colorType: 6 }, Buffer.concat(parts));
}

/** A grey progressive JPEG whose scans but the first say only that nothing changes: about 55 bytes each for 5600². */
export function progressiveJpeg(side: number, scans: number): Bytes {
  const blocks = Math.ceil(side / 8) ** 2;
  const segment = (marker: number, bytes: number[]) => {
    const length = bytes.length + 2;
    return [0xff, marker, length >> 8, length & 255, ...bytes];
  };
  /** One symbol, which is a single bit. */
  const table = (id: number, symbol: number) => segment(0xc4, [id, 1, ...Array.from({ length: 15 }, () => 0), symbol]);
  const sides = [side >> 8, side & 255, side >> 8, side & 255];
  const head = [
    ...[0xff, 0xd8],
    ...segment(0xdb, [0, ...Array.from({ length: 64 }, () => 1)]),
    ...segment(0xc2, [8, ...sides, 1, 1, 0x11, 0]),
    ...table(0x00, 0),
    ...table(0x10, 0xe0),
  ];
  const first = Buffer.concat([Buffer.from(segment(0xda, [1, 1, 0, 0, 0, 0])), Buffer.alloc(Math.ceil(blocks / 8))]);
  // Each fifteen bits pass over 32,767 blocks.
  const bits = "0".padEnd(15, "1").repeat(Math.ceil(blocks / 32_767));
  const bytes = bits.match(/.{1,8}/g)?.map((eight) => Number.parseInt(eight.padEnd(8, "1"), 2)) ?? [];
  const stuffed = bytes.flatMap((byte) => (byte === 0xff ? [0xff, 0] : [byte]));
  const further = Buffer.from([...segment(0xda, [1, 1, 0, 1, 63, 0]), ...stuffed]);
  const all = [
    Buffer.from(head),
    first,
    ...Array.from({ length: scans - 1 }, () => further),
    Buffer.from([0xff, 0xd9]),
  ];
  return new Uint8Array(Buffer.concat(all));
}

interface WebpChunk {
  type: string;
  data: Buffer;
}

function webpChunks(file: Uint8Array): WebpChunk[] {
  const bytes = Buffer.from(file);
  const chunks: WebpChunk[] = [];
  for (let at = 12; at + 8 <= bytes.byteLength; ) {
    const size = bytes.readUInt32LE(at + 4);
    chunks.push({ type: bytes.toString("latin1", at, at + 4), data: bytes.subarray(at + 8, at + 8 + size) });
    at += 8 + size + (size % 2);
  }
  return chunks;
}

function webpBytes({ type, data }: WebpChunk): Buffer {
  const head = Buffer.alloc(8);
  head.write(type, "latin1");
  head.writeUInt32LE(data.byteLength, 4);
  return Buffer.concat([head, data, Buffer.alloc(data.byteLength % 2)]);
}

const webpOf = (chunks: readonly WebpChunk[]): Bytes =>
  new Uint8Array(webpBytes({ type: "RIFF", data: Buffer.concat([Buffer.from("WEBP"), ...chunks.map(webpBytes)]) }));

/** `VP8X`: what a WebP has beside its picture. */
function extended(flags: number, { width, height }: { width: number; height: number }): WebpChunk {
  const data = Buffer.alloc(10);
  data[0] = flags;
  data.writeUIntLE(width - 1, 4, 3);
  data.writeUIntLE(height - 1, 7, 3);
  return { type: "VP8X", data };
}

const pictureOf = (file: Uint8Array): WebpChunk[] => webpChunks(file).filter(({ type }) => type !== "VP8X");

/** A still WebP with EXIF data. */
export const webpWithExif = (file: Uint8Array, size: { width: number; height: number }, exif: Buffer): Bytes =>
  webpOf([extended(0x08, size), ...pictureOf(file), { type: "EXIF", data: exif }]);

/** An animated WebP with these still ones of one size as its frames. */
export function animatedWebp(frames: readonly Uint8Array[], size: { width: number; height: number }): Bytes {
  const animated = frames.map((frame): WebpChunk => {
    const head = Buffer.alloc(16);
    head.writeUIntLE(size.width - 1, 6, 3);
    head.writeUIntLE(size.height - 1, 9, 3);
    head.writeUIntLE(100, 12, 3);
    return { type: "ANMF", data: Buffer.concat([head, ...pictureOf(frame).map(webpBytes)]) };
  });
  return webpOf([extended(0x12, size), { type: "ANIM", data: Buffer.alloc(6) }, ...animated]);
}
