import { AppError, tooLarge, unsupportedMediaType } from "../../../../kernel/errors.ts";
import { PIXELS_PER_MEGAPIXEL, THUMB_SOURCE_SCANS_MAX, THUMB_SOURCE_SIDE_MAX } from "../limits.ts";
import { stillPicture } from "./containers.ts";
import { countScans, isJpeg } from "./jpeg-scans.ts";
import { oriented } from "./orientation.ts";

export interface PictureSize {
  width: number;
  height: number;
}

/** `200x100`; null for anything else. */
export function parseSize(text: string): PictureSize | null {
  const match = /^(\d{1,4})x(\d{1,4})$/.exec(text);
  return match === null ? null : { width: Number(match[1]), height: Number(match[2]) };
}

/**
 * The picture made to fit, never enlarged, as WebP; of an animation its first frame. What decides how much memory and time a small
 * file takes is counted first: pixels, pixels per side, scans. Errors: 413 for too many of them, 415 for what is not a picture.
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
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
    if (code === "ERR_IMAGE_TOO_MANY_PIXELS") throw tooMany();
    if (!code.startsWith("ERR_IMAGE")) throw cause;
    throw unsupportedMediaType("This file is not a picture that a thumbnail can be made of");
  }
}

/** Errors: 413. */
function requireDecodable(file: Buffer, { width, height }: PictureSize): void {
  const side = Math.max(width, height);
  if (side > THUMB_SOURCE_SIDE_MAX) {
    throw tooLarge(`A picture must have at most ${THUMB_SOURCE_SIDE_MAX} pixels per side for a thumbnail, got ${side}`);
  }
  if (isJpeg(file) && countScans(file, THUMB_SOURCE_SCANS_MAX) > THUMB_SOURCE_SCANS_MAX) {
    throw tooLarge(`A JPEG must have at most ${THUMB_SOURCE_SCANS_MAX} scans for a thumbnail`);
  }
}

/** `RIFF`, the length of the rest, `WEBP`. */
const RIFF_HEAD_BYTES = 12;

/** Whether the file is a WebP of the length that its head gives; false for a file that was cut short or does not exist. */
export async function isWholeWebp(path: string): Promise<boolean> {
  const file = Bun.file(path);
  try {
    const head = Buffer.from(await file.slice(0, RIFF_HEAD_BYTES).arrayBuffer());
    if (head.byteLength < RIFF_HEAD_BYTES) return false;
    const isWebp = head.toString("latin1", 0, 4) === "RIFF" && head.toString("latin1", 8, 12) === "WEBP";
    return isWebp && head.readUInt32LE(4) + 8 === file.size;
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return false;
    throw cause;
  }
}
