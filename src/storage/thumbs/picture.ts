import { AppError, tooLarge, unsupportedMediaType } from "../../kernel/errors.ts";
import { PIXELS_PER_MEGAPIXEL } from "../limits.ts";

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
 * The picture made to fit, never enlarged, as WebP. The header is read first: the pixels that a small file claims are counted
 * before memory is allocated for them. Errors: 413 for too many pixels, 415 for what is not a picture.
 */
export async function scaled(
  source: Uint8Array,
  { width, height }: PictureSize,
  pixelsMax: number,
): Promise<Uint8Array> {
  const tooMany = () => {
    const megapixels = pixelsMax / PIXELS_PER_MEGAPIXEL;
    return tooLarge(`A picture must have at most ${megapixels} megapixels (${pixelsMax} pixels) for a thumbnail`);
  };
  try {
    const image = () => new Bun.Image(source, { maxPixels: pixelsMax });
    const header = await image().metadata();
    if (header.width * header.height > pixelsMax) throw tooMany();
    return await image().resize(width, height, { fit: "inside", withoutEnlargement: true }).webp().bytes();
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
    if (code === "ERR_IMAGE_TOO_MANY_PIXELS") throw tooMany();
    if (!code.startsWith("ERR_IMAGE")) throw cause;
    throw unsupportedMediaType("This file is not a picture that a thumbnail can be made of");
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
