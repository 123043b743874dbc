import { join } from "node:path";
import { type AppError, badField } from "../../../../kernel/errors.ts";
import type { Bucket, Content, StoredObject } from "../model/types.ts";
import { isWholeWebp } from "./picture.ts";

const CONTENT_TYPE = "image/webp";
/** Length of the names of the folders in which the thumbnails of files are: the last characters of their ids. */
export const FOLDER_NAME_LENGTH = 2;

/** A thumbnail: the folder of all, the file that it was made of, and its size. */
export interface KeptThumb {
  directory: string;
  fileId: string;
  size: string;
}

export const thumbFolder = ({ directory, fileId }: Omit<KeptThumb, "size">): string =>
  join(directory, fileId.slice(-FOLDER_NAME_LENGTH), fileId);

export const thumbPath = ({ size, ...file }: KeptThumb): string => join(thumbFolder(file), size);

/** Returns the content of a thumbnail that has been made. */
export function thumbContent(thumb: KeptThumb): Content {
  const file = Bun.file(thumbPath(thumb));
  return {
    etag: `"${thumb.fileId}-${thumb.size}"`,
    size: file.size,
    contentType: CONTENT_TYPE,
    body: ({ start, end, size: whole }) => (start === 0 && end === whole ? file : file.slice(start, end)),
  };
}

/** Returns thumbnails that have been made. `make` is called for others. Errors: 400 for a size that the bucket does not declare. */
export const createKeptThumbs = (directory: string, make: () => never) => ({
  async content(bucket: Bucket, { fileId }: StoredObject, size: string): Promise<Content> {
    if (bucket.config.thumbs?.includes(size) !== true) throw undeclared(bucket);
    const thumb = { directory, fileId, size };
    return isWholeWebp(thumbPath(thumb)) ? thumbContent(thumb) : make();
  },
});

export function undeclared({ config }: Bucket): AppError {
  const declared = config.thumbs?.join(", ") ?? "";
  const known = declared === "" ? "this bucket has none" : `one of ${declared}`;
  return badField("thumb", "invalid_value", `thumb must be a declared size: ${known}`);
}
