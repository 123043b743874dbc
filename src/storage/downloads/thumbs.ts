import { mkdirSync } from "node:fs";
import { mkdir, open, readdir, rename, rmdir } from "node:fs/promises";
import { join } from "node:path";
import type { StorageConfig } from "../../config/types.ts";
import { AppError, badField, tooLarge, unsupportedMediaType } from "../../kernel/errors.ts";
import type { Ids } from "../../kernel/ids.ts";
import { removeFile } from "../files/local-files.ts";
import {
  PIXELS_PER_MEGAPIXEL,
  THUMB_SOURCE_MAX_BYTES,
  THUMB_SOURCE_MEGAPIXELS_DEFAULT,
  THUMBS_AT_ONCE_DEFAULT,
  THUMBS_WAITING_MAX,
} from "../limits.ts";
import type { Bucket, StoredId, StoredObject } from "../types.ts";
import type { Content } from "./download.ts";

const SIZE = /^(\d{1,4})x(\d{1,4})$/;
const CONTENT_TYPE = "image/webp";
/** `RIFF`, the length of what follows, `WEBP`. */
const RIFF_HEAD_BYTES = 12;

export interface Thumbs {
  /**
   * The picture made to fit into `size` (`200x200`), never enlarged, as WebP; made once and kept. Errors: 400 for a size
   * that the bucket does not declare, 415 for what is no picture, 413 for one too large to decode, 503 too many wait.
   */
  content(bucket: Bucket, object: StoredObject, size: string): Promise<Content>;
  /** Every size of this file's. */
  remove(fileId: string): Promise<void>;
  /** The files that have thumbnails, in groups: for the sweep. */
  fileIds(): AsyncIterable<readonly StoredId[]>;
}

/** Kept under `directory/XX/FILE-ID/SIZE`, XX being the id's last two characters. */
export function createThumbs(deps: { directory: string; config: StorageConfig["thumbs"]; ids: Ids }): Thumbs {
  const { directory, ids } = deps;
  const { atOnce = THUMBS_AT_ONCE_DEFAULT, maxMegapixels = THUMB_SOURCE_MEGAPIXELS_DEFAULT } = deps.config ?? {};
  const turns = createTurns(atOnce);
  const pixelsMax = maxMegapixels * PIXELS_PER_MEGAPIXEL;
  const making = new Map<string, Promise<void>>();
  mkdirSync(directory, { recursive: true });
  const folderOf = (fileId: string): string => join(directory, fileId.slice(-2), fileId);

  const make = async (bucket: Bucket, object: StoredObject, size: string, path: string): Promise<void> => {
    if (object.size > THUMB_SOURCE_MAX_BYTES) {
      throw tooLarge(`A picture must be at most ${THUMB_SOURCE_MAX_BYTES} bytes for a thumbnail, got ${object.size}`);
    }
    await turns.run(async () => {
      const { fileId, size: sizeBytes } = object;
      const source = await bucket.files.body(fileId, { start: 0, end: sizeBytes, size: sizeBytes });
      const bytes = await scaled(await new Response(source).bytes(), size, pixelsMax);
      // Synced and renamed into place: neither a reader nor a crash leaves half of one under that name.
      await mkdir(folderOf(object.fileId), { recursive: true });
      const unfinished = `${path}.${ids.uuid()}`;
      try {
        await writeSynced(unfinished, bytes);
        await rename(unfinished, path);
      } catch (cause) {
        await removeFile(unfinished).catch(() => {});
        throw cause;
      }
    });
  };

  return {
    async content(bucket, object, size) {
      if (bucket.config.thumbs?.includes(size) !== true || !SIZE.test(size)) {
        const declared = bucket.config.thumbs?.join(", ") ?? "";
        const known = declared === "" ? "this bucket has none" : `one of ${declared}`;
        throw badField("thumb", "invalid_value", `thumb must be a declared size: ${known}`);
      }
      const path = join(folderOf(object.fileId), size);
      if (!(await isWhole(path))) {
        const present = making.get(path) ?? make(bucket, object, size, path).finally(() => making.delete(path));
        making.set(path, present);
        await present;
      }
      const file = Bun.file(path);
      return {
        etag: `"${object.fileId}-${size}"`,
        size: file.size,
        contentType: CONTENT_TYPE,
        body: ({ start, end, size: whole }) => (start === 0 && end === whole ? file : file.slice(start, end)),
      };
    },
    async remove(fileId) {
      const folder = folderOf(fileId);
      for (const name of await readdir(folder).catch(() => [])) await removeFile(join(folder, name));
      await removeFolder(folder);
    },
    async *fileIds() {
      for (const name of await readdir(directory)) {
        yield (await readdir(join(directory, name))).map((fileId) => ({ fileId, writtenAt: null }));
      }
    },
  };
}

async function writeSynced(path: string, bytes: Uint8Array): Promise<void> {
  const handle = await open(path, "wx", 0o600);
  try {
    await handle.writeFile(bytes);
    await handle.datasync();
  } finally {
    await handle.close();
  }
}

/** By the length at its head: one that was cut short is made again, and so is one that is not there. */
async function isWhole(path: string): Promise<boolean> {
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

async function removeFolder(folder: string): Promise<void> {
  await rmdir(folder).catch(() => {}); // there was none
}

/** Header first: pixels that a small file claims are counted before any are allocated. */
async function scaled(source: Uint8Array, size: string, pixelsMax: number): Promise<Uint8Array> {
  const tooMany = () => {
    const megapixels = pixelsMax / PIXELS_PER_MEGAPIXEL;
    return tooLarge(`A picture must have at most ${megapixels} megapixels (${pixelsMax} pixels) for a thumbnail`);
  };
  const [, width = "", height = ""] = SIZE.exec(size) ?? [];
  try {
    const image = () => new Bun.Image(source, { maxPixels: pixelsMax });
    const header = await image().metadata();
    if (header.width * header.height > pixelsMax) throw tooMany();
    return await image()
      .resize(Number(width), Number(height), { fit: "inside", withoutEnlargement: true })
      .webp()
      .bytes();
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
    if (code === "ERR_IMAGE_TOO_MANY_PIXELS") throw tooMany();
    if (!code.startsWith("ERR_IMAGE")) throw cause;
    throw unsupportedMediaType("This file is not a picture that a thumbnail can be made of");
  }
}

/** So many at once, so many waiting, no more. */
function createTurns(atOnce: number) {
  let running = 0;
  const waiting: (() => void)[] = [];
  return {
    async run(work: () => Promise<void>): Promise<void> {
      if (running >= atOnce) {
        if (waiting.length >= THUMBS_WAITING_MAX) throw new AppError(503, "Too many thumbnails are being made");
        await new Promise<void>((turn) => waiting.push(turn));
      } else {
        running++;
      }
      try {
        await work();
      } finally {
        const next = waiting.shift();
        if (next === undefined) running--;
        else next();
      }
    },
  };
}
