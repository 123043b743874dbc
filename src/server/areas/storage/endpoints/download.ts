import type { MaybePromise } from "../../../../kernel/maybe-promise.ts";
import { answerFile } from "../../../http/bodies/file-answer.ts";
import { isShownInline } from "../model/content.ts";
import type { Bucket, StoredObject } from "../model/types.ts";

/** The content of an answer: a stored file, or a thumbnail of one. */
export interface Content {
  etag: string;
  size: number;
  contentType: string;
  body(range: { start: number; end: number; size: number }): MaybePromise<Blob | ReadableStream<Uint8Array>>;
}

/**
 * Scripts run on an opaque origin: without cookies and storage of this one, and without the session of an administrator who opens the
 * file. `allow-same-origin` and `allow-popups-to-escape-sandbox` would undo that.
 */
const SANDBOX_OF_PAGES = "sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts";

export const contentOf = ({ files }: Bucket, { fileId, size, contentType }: StoredObject): Content => ({
  etag: `"${fileId}"`,
  size,
  contentType,
  body: (range) => files.body(fileId, range),
});

/** Errors: as `answerFile`; 503 before anything is sent where an object store fails. */
export function respondWith(
  request: Request,
  bucket: Bucket,
  object: StoredObject,
  content: Content,
): Promise<Response> {
  const { etag, size, body } = content;
  return answerFile(request, {
    etag,
    size,
    lastModified: new Date(object.uploaded),
    headers: headersOf(bucket, object, content),
    body,
  });
}

function headersOf(bucket: Bucket, { key }: StoredObject, { contentType }: Content): Record<string, string> {
  const headers: Record<string, string> = {
    "content-type": contentType,
    // Set in every case: Bun would name the file by its name on the disk.
    "content-disposition": "inline",
    // Caches revalidate a copy before they use it again, so that rules, expiry and overwrites count at once.
    "cache-control": bucket.config.access?.read === true ? "public, no-cache" : "private, no-cache",
  };
  const { inline = false } = bucket.config;
  if (isShownInline(contentType) || inline === "sameOrigin") return headers;
  if (inline) {
    headers["content-security-policy"] = SANDBOX_OF_PAGES;
    return headers;
  }
  const name = encodeURIComponent(key.split("/").at(-1) ?? "").replaceAll("'", "%27");
  headers["content-disposition"] = `attachment; filename*=UTF-8''${name}`;
  headers["content-security-policy"] = "sandbox";
  return headers;
}
