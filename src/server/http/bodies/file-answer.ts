import { AppError } from "../../../kernel/errors.ts";
import type { MaybePromise } from "../../../kernel/maybe-promise.ts";
import { chooseRange, isUnmodified, rangeStillValid } from "./range.ts";

/** A file that a client may request in ranges. */
export interface AnsweredFile {
  /** The entity tag, with its quotes. */
  etag: string;
  size: number;
  lastModified: Date;
  /** Further headers. `content-disposition` must be among them: Bun would name the file by its name on the disk. */
  headers: Readonly<Record<string, string>>;
  /** Returns the bytes of a range; `end` is exclusive. Not called for an empty file. */
  body(range: { start: number; end: number; size: number }): MaybePromise<Blob | ReadableStream<Uint8Array>>;
}

/** Answers GET and HEAD with 200, 206 or 304. Errors: 416; those of `body`, before anything is sent. */
export async function answerFile(request: Request, file: AnsweredFile): Promise<Response> {
  const { etag, size } = file;
  const lastModified = file.lastModified.toUTCString();
  const headers: Record<string, string> = {
    ...file.headers,
    etag,
    "last-modified": lastModified,
    "accept-ranges": "bytes",
  };
  if (isUnmodified(request.headers, { etag, modifiedMs: file.lastModified.getTime() })) {
    return emptyAnswer(request, { status: 304, headers, sizeBytes: size });
  }
  if (request.method === "HEAD") return emptyAnswer(request, { status: 200, headers, sizeBytes: size });

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
  // Bun applies the `Range` header to a whole file by itself, so an ignored one is removed from the request.
  if (range.kind === "whole" && header !== null) request.headers.delete("range");
  const body = size === 0 ? null : await file.body({ start, end, size });
  return new Response(body, { status: range.kind === "part" ? 206 : 200, headers });
}

/**
 * Builds an answer without a body. For HEAD it has the Content-Length that GET would have, also with 304: the router sets it to
 * that of the body, which is empty. These headers preserve the declared length.
 */
export function emptyAnswer(
  { method }: Request,
  answer: { status: 200 | 304 | 404; headers: Readonly<Record<string, string>>; sizeBytes: number },
): Response {
  const { status } = answer;
  if (method !== "HEAD") return new Response(null, { status, headers: answer.headers });
  const declared = { ...answer.headers, "content-length": String(answer.sizeBytes) };
  const headers = new Headers(declared);
  const set = headers.set.bind(headers);
  const keepLength = (name: string, value: string): void => {
    if (name.toLowerCase() !== "content-length") set(name, value);
  };
  Object.defineProperty(headers, "set", { value: keepLength });
  return Object.defineProperty(new Response(null, { status, headers: declared }), "headers", { value: headers });
}
