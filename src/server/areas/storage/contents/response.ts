import { answerFile } from "../../../http/bodies/file-answer.ts";
import { isShownInline } from "../model/content.ts";
import type { Bucket, Content, StoredObject } from "../model/types.ts";

/**
 * Policy of pages. Scripts run on an opaque origin: without the cookies and storage of this one, and without the session of
 * an administrator who opens the file. `allow-same-origin` and `allow-popups-to-escape-sandbox` would undo that.
 */
const SANDBOX_OF_PAGES = "sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts";

export const contentOf = ({ files }: Bucket, { fileId, size, contentType }: StoredObject): Content => ({
  etag: `"${fileId}"`,
  size,
  contentType,
  body: (range) => files.body(fileId, range),
});

/**
 * Builds the response with the content of a file. `isPublic`: caches may share it. Errors: as `answerFile`; 503 before anything is sent when an object store
 * fails.
 */
export function respondWith(
  request: Request,
  bucket: Bucket,
  object: StoredObject,
  content: Content,
  options: { isPublic: boolean },
): Promise<Response> {
  const { etag, size, body } = content;
  return answerFile(request, {
    etag,
    size,
    lastModified: new Date(object.uploaded),
    headers: headersOf(bucket, object, content, options),
    body,
  });
}

/** Whether anybody may read the files of a bucket. */
export const isPublic = ({ config }: Bucket): boolean => config.access?.read === true;

function headersOf(
  bucket: Bucket,
  { key }: StoredObject,
  { contentType }: Content,
  options: { isPublic: boolean },
): Record<string, string> {
  const headers: Record<string, string> = {
    "content-type": contentType,
    // Always set: Bun would name the file by its name on the disk.
    "content-disposition": "inline",
    // Caches revalidate a copy before reuse, so that rules, expiry and overwrites take effect immediately.
    "cache-control": options.isPublic ? "public, no-cache" : "private, no-cache",
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
