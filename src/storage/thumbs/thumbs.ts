import { mkdirSync } from "node:fs";
import { mkdir, open, readdir, rename, rmdir } from "node:fs/promises";
import { join } from "node:path";
import pLimit from "p-limit";
import type { StorageConfig } from "../../config/types.ts";
import { AppError, badField, tooLarge } from "../../kernel/errors.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Content } from "../downloads/download.ts";
import { removeFile } from "../files/local-files.ts";
import {
  PIXELS_PER_MEGAPIXEL,
  THUMB_SOURCE_MAX_BYTES,
  THUMB_SOURCE_MEGAPIXELS_DEFAULT,
  THUMBS_AT_ONCE_DEFAULT,
  THUMBS_WAITING_MAX,
} from "../limits.ts";
import type { Bucket, StoredId, StoredObject } from "../types.ts";
import { isWholeWebp, parseSize, scaled } from "./picture.ts";

const CONTENT_TYPE = "image/webp";
const FOLDER_NAME_LENGTH = 2;

export interface Thumbs {
  /**
   * The picture made to fit into `size` (`200x200`), never enlarged, as WebP; made once and kept. Errors: 400 for a size
   * that the bucket does not declare, 415 for a file that is not a picture, 413 for one that is too large to decode, 503
   * when too many requests wait.
   */
  content(bucket: Bucket, object: StoredObject, size: string): Promise<Content>;
  /** Removes the thumbnails of a file, in every size. */
  remove(fileId: string): Promise<void>;
  /** The files that have thumbnails, in groups: for the sweep. */
  fileIds(): AsyncIterable<readonly StoredId[]>;
}

/** Kept as `directory/XX/FILE-ID/SIZE`; XX are the last two characters of the id. */
export function createThumbs(deps: { directory: string; config: StorageConfig["thumbs"]; ids: Ids }): Thumbs {
  const { directory, ids } = deps;
  const { atOnce = THUMBS_AT_ONCE_DEFAULT, maxMegapixels = THUMB_SOURCE_MEGAPIXELS_DEFAULT } = deps.config ?? {};
  const decoding = pLimit(atOnce);
  const pixelsMax = maxMegapixels * PIXELS_PER_MEGAPIXEL;
  const making = new Map<string, Promise<void>>();
  mkdirSync(directory, { recursive: true });
  const folderOf = (fileId: string): string => join(directory, fileId.slice(-FOLDER_NAME_LENGTH), fileId);

  const make = async (bucket: Bucket, object: StoredObject, size: string, path: string): Promise<void> => {
    const fit = parseSize(size);
    if (fit === null) throw undeclared(bucket);
    if (object.size > THUMB_SOURCE_MAX_BYTES) {
      throw tooLarge(`A picture must be at most ${THUMB_SOURCE_MAX_BYTES} bytes for a thumbnail, got ${object.size}`);
    }
    if (decoding.pendingCount >= THUMBS_WAITING_MAX) throw new AppError(503, "Too many thumbnails are being made");
    await decoding(async () => {
      const { fileId, size: sizeBytes } = object;
      const source = await bucket.files.body(fileId, { start: 0, end: sizeBytes, size: sizeBytes });
      const bytes = await scaled(await new Response(source).bytes(), fit, pixelsMax);
      await mkdir(folderOf(fileId), { recursive: true });
      await writeWhole(path, bytes, ids.uuid());
    });
  };

  return {
    async content(bucket, object, size) {
      if (bucket.config.thumbs?.includes(size) !== true) throw undeclared(bucket);
      const path = join(folderOf(object.fileId), size);
      if (!(await isWholeWebp(path))) {
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
      await rmdir(folder).catch(() => {}); // Most files have no thumbnails.
    },
    async *fileIds() {
      for (const name of await readdir(directory)) {
        // What a file manager leaves there, such as `.DS_Store`.
        if (name.length !== FOLDER_NAME_LENGTH) continue;
        yield (await readdir(join(directory, name))).map((fileId) => ({ fileId, writtenAt: null }));
      }
    },
  };
}

function undeclared({ config }: Bucket): AppError {
  const declared = config.thumbs?.join(", ") ?? "";
  const known = declared === "" ? "this bucket has none" : `one of ${declared}`;
  return badField("thumb", "invalid_value", `thumb must be a declared size: ${known}`);
}

/** Synced, then renamed into place: no reader and no crash finds a part of it under its name. */
async function writeWhole(path: string, bytes: Uint8Array, suffix: string): Promise<void> {
  const unfinished = `${path}.${suffix}`;
  try {
    const handle = await open(unfinished, "wx", 0o600);
    try {
      await handle.writeFile(bytes);
      await handle.datasync();
    } finally {
      await handle.close();
    }
    await rename(unfinished, path);
  } catch (cause) {
    await removeFile(unfinished).catch(() => {});
    throw cause;
  }
}
