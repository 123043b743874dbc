import { chooseRange, matchesEtag, rangeStillValid } from "../../http/exchange/range.ts";
import { AppError } from "../../kernel/errors.ts";
import type { MaybePromise } from "../../kernel/maybe-promise.ts";
import { isShownInline } from "../content.ts";
import type { Bucket, StoredObject } from "../types.ts";

/** The content of an answer: a stored file, or a thumbnail of one. */
export interface Content {
  etag: string;
  size: number;
  contentType: string;
  body(range: { start: number; end: number; size: number }): MaybePromise<Blob | ReadableStream<Uint8Array>>;
}

export const contentOf = ({ files }: Bucket, { fileId, size, contentType }: StoredObject): Content => ({
  etag: `"${fileId}"`,
  size,
  contentType,
  body: (range) => files.body(fileId, range),
});

/** 200, 206 or 304 for GET and HEAD. Errors: 416; 503 before anything is sent where an object store fails. */
export async function respondWith(
  request: Request,
  bucket: Bucket,
  object: StoredObject,
  content: Content,
): Promise<Response> {
  const { etag, size } = content;
  const lastModified = new Date(object.uploaded).toUTCString();
  const headers = headersOf(bucket, object, content, lastModified);
  if (matchesEtag(request.headers.get("if-none-match"), etag)) return new Response(null, { status: 304, headers });
  if (request.method === "HEAD") return headAnswer({ ...headers, "content-length": String(size) });

  const header = request.headers.get("range");
  const isValid = header !== null && rangeStillValid(request.headers.get("if-range"), etag, lastModified);
  const range = chooseRange(isValid ? header : null, size);
  if (range.kind === "unsatisfiable") {
    throw new AppError(416, `The range is not within the file's ${size} bytes`, {
      headers: { "content-range": `bytes */${size}`, "accept-ranges": "bytes" },
    });
  }
  const { start, end } = range.kind === "part" ? range : { start: 0, end: size };
  headers["content-length"] = String(end - start);
  if (range.kind === "part") headers["content-range"] = `bytes ${start}-${end - 1}/${size}`;
  // Bun applies the header `Range` to a whole file by itself: one that is ignored is removed from the request.
  if (range.kind === "whole" && header !== null) request.headers.delete("range");
  const body = size === 0 ? null : await content.body({ start, end, size });
  return new Response(body, { status: range.kind === "part" ? 206 : 200, headers });
}

function headersOf(
  bucket: Bucket,
  { key }: StoredObject,
  { etag, contentType }: Content,
  lastModified: string,
): Record<string, string> {
  const headers: Record<string, string> = {
    "content-type": contentType,
    etag,
    "last-modified": lastModified,
    "accept-ranges": "bytes",
    // Set in every case: Bun would name the file by its name on the disk.
    "content-disposition": "inline",
    // Caches revalidate a copy before they use it again, so that rules, expiry and overwrites count at once.
    "cache-control": bucket.config.access?.read === true ? "public, no-cache" : "private, no-cache",
  };
  if (!isShownInline(contentType) && bucket.config.inline !== true) {
    // Shown inline it might run scripts with the rights of this origin.
    const name = encodeURIComponent(key.split("/").at(-1) ?? "").replaceAll("'", "%27");
    headers["content-disposition"] = `attachment; filename*=UTF-8''${name}`;
    headers["content-security-policy"] = "sandbox";
  }
  return headers;
}

/**
 * The router sets the Content-Length of an answer to HEAD to that of its body, which is empty. These headers keep the declared
 * length.
 */
function headAnswer(declared: Record<string, string>): Response {
  const headers = new Headers(declared);
  const set = headers.set.bind(headers);
  const keepLength = (name: string, value: string): void => {
    if (name.toLowerCase() !== "content-length") set(name, value);
  };
  Object.defineProperty(headers, "set", { value: keepLength });
  return Object.defineProperty(new Response(null, { headers: declared }), "headers", { value: headers });
}
