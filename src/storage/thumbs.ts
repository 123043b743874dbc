import { mkdirSync } from "node:fs";
import { mkdir, readdir, rename, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { AppError, badField, tooLarge, unsupportedMediaType } from "../kernel/errors.ts";
import type { Ids } from "../kernel/ids.ts";
import type { Content } from "./download.ts";
import { THUMB_SOURCE_MAX_BYTES, THUMB_SOURCE_PIXELS_MAX, THUMBS_AT_ONCE_MAX, THUMBS_WAITING_MAX } from "./limits.ts";
import { removeFile } from "./local-files.ts";
import type { Bucket, StoredId, StoredObject } from "./types.ts";

const SIZE = /^(\d{1,4})x(\d{1,4})$/;
const CONTENT_TYPE = "image/webp";

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
export function createThumbs(deps: { directory: string; ids: Ids }): Thumbs {
  const { directory, ids } = deps;
  const turns = createTurns();
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
      const bytes = await scaled(await new Response(source).bytes(), size);
      // Renamed into place: a reader never sees half of one.
      await mkdir(folderOf(object.fileId), { recursive: true });
      const unfinished = `${path}.${ids.uuid()}`;
      try {
        await Bun.write(unfinished, bytes);
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
      if (!(await Bun.file(path).exists())) {
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

async function removeFolder(folder: string): Promise<void> {
  await rmdir(folder).catch(() => {}); // there was none
}

/** Header first: pixels that a small file claims are counted before any are allocated. */
async function scaled(source: Uint8Array, size: string): Promise<Uint8Array> {
  const [, width = "", height = ""] = SIZE.exec(size) ?? [];
  try {
    const image = () => new Bun.Image(source, { maxPixels: THUMB_SOURCE_PIXELS_MAX });
    const header = await image().metadata();
    if (header.width * header.height > THUMB_SOURCE_PIXELS_MAX) {
      throw tooLarge(`A picture must have at most ${THUMB_SOURCE_PIXELS_MAX} pixels for a thumbnail`);
    }
    return await image()
      .resize(Number(width), Number(height), { fit: "inside", withoutEnlargement: true })
      .webp()
      .bytes();
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
    if (code === "ERR_IMAGE_TOO_MANY_PIXELS") {
      throw tooLarge(`A picture must have at most ${THUMB_SOURCE_PIXELS_MAX} pixels for a thumbnail`);
    }
    if (!code.startsWith("ERR_IMAGE")) throw cause;
    throw unsupportedMediaType("This file is not a picture that a thumbnail can be made of");
  }
}

/** So many at once, so many waiting, no more. */
function createTurns() {
  let running = 0;
  const waiting: (() => void)[] = [];
  return {
    async run(work: () => Promise<void>): Promise<void> {
      if (running >= THUMBS_AT_ONCE_MAX) {
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
