import { AppError } from "../../../kernel/errors.ts";
import { emptyAnswer } from "../../http/bodies/file-answer.ts";
import { chooseRange, isUnmodified, rangeStillValid } from "../../http/bodies/range.ts";
import { acceptsEncoding, IMMUTABLE } from "../../http/packed/answers.ts";
import { fileAt, type SiteFile, type SiteFiles } from "./files.ts";
import { NOT_FOUND_PAGE, PAGE_HEADERS } from "./pages.ts";
import { hasHash, type SitePath } from "./paths.ts";

export interface SiteOptions {
  files: SiteFiles;
  /** Whether a navigation that finds no file receives `index.html`. */
  isSinglePage: boolean;
  /** The headers of every file, by lower-case names. */
  headers: Readonly<Record<string, string>>;
}

/** Finds a path's content: a file, or the page of a directory. */
export function pageAt(
  files: SiteFiles,
  { path, endsWithSlash }: SitePath,
): { path: string; file: SiteFile; lacksSlash: boolean } | null {
  const found = files.find(path);
  if (found === null) return null;
  if (found !== "directory") return endsWithSlash ? null : { path, file: found, lacksSlash: false };
  const index = join(path, "index.html");
  const file = fileAt(files, index);
  return file === null ? null : { path: index, file, lacksSlash: !endsWithSlash };
}

/** Answers GET and HEAD. null: there is nothing, and the client wants no page. Errors: 416. */
export function answerFrom(options: SiteOptions, path: SitePath, request: Request, url: URL): Response | null {
  const page = pageAt(options.files, path);
  if (page === null) return withoutFile(options, request);
  if (!page.lacksSlash) return fileAnswer(options, page.path, page.file, request);
  // Relative links on the page resolve against its directory.
  const location = `${url.pathname}/${url.search}`;
  return new Response(null, { status: 301, headers: { ...options.headers, location, "cache-control": "no-cache" } });
}

const join = (directory: string, name: string): string => (directory === "" ? name : `${directory}/${name}`);

function withoutFile(options: SiteOptions, request: Request): Response | null {
  const { files, isSinglePage } = options;
  if (isSinglePage && isNavigation(request.headers)) {
    const index = fileAt(files, "index.html");
    if (index !== null) return fileAnswer(options, "index.html", index, request);
  }
  if (!acceptsHtml(request.headers)) return null;
  const own = fileAt(files, "404.html");
  if (own === null) {
    const headers = { ...PAGE_HEADERS, ...options.headers };
    if (request.method !== "HEAD") return new Response(NOT_FOUND_PAGE, { status: 404, headers });
    return emptyAnswer(request, { status: 404, headers, sizeBytes: Buffer.byteLength(NOT_FOUND_PAGE) });
  }
  const headers = { ...headersOf(options, "404.html", own), "cache-control": "no-cache" };
  if (request.method !== "HEAD") return new Response(own.blob(), { status: 404, headers });
  return emptyAnswer(request, { status: 404, headers, sizeBytes: own.size });
}

const acceptsHtml = (headers: Headers): boolean => headers.get("accept")?.includes("text/html") === true;

/** Whether the request is a navigation, by the browser's header; without that header, if the client accepts HTML. */
function isNavigation(headers: Headers): boolean {
  const mode = headers.get("sec-fetch-mode");
  return mode === null ? acceptsHtml(headers) : mode === "navigate";
}

function headersOf({ headers }: SiteOptions, path: string, { contentType }: SiteFile): Record<string, string> {
  return {
    "content-type": contentType,
    "cache-control": hasHash(path) ? IMMUTABLE : "no-cache",
    ...headers,
  };
}

/** Answers with 200, 206 or 304. Errors: 416. */
function fileAnswer(options: SiteOptions, path: string, file: SiteFile, request: Request): Response {
  const asked = request.headers;
  // RFC 9110, 14.2: Range is defined for GET only.
  const range = request.method === "GET" ? asked.get("range") : null;
  // Few clients can use a part of a compressed file.
  const accepted = range === null ? asked.get("accept-encoding") : null;
  const { chosen, varies } = representationOf(options.files, path, file, accepted);
  const { size, etag, modifiedMs } = chosen.file;
  const lastModified = new Date(modifiedMs).toUTCString();
  const headers = headersOf(options, path, file);
  headers["etag"] = etag;
  headers["last-modified"] = lastModified;
  headers["accept-ranges"] = "bytes";
  if (varies) headers["vary"] = "Accept-Encoding";
  if (chosen.encoding !== null) headers["content-encoding"] = chosen.encoding;
  if (isUnmodified(asked, { etag, modifiedMs })) return emptyAnswer(request, { status: 304, headers, sizeBytes: size });

  const isValid = range !== null && rangeStillValid(asked.get("if-range"), etag, lastModified);
  const part = chooseRange(isValid ? range : null, size);
  if (part.kind === "unsatisfiable") {
    throw new AppError(416, `The range is not within the file's ${size} bytes`, {
      headers: { "content-range": `bytes */${size}`, "accept-ranges": "bytes" },
    });
  }
  const { start, end } = part.kind === "part" ? part : { start: 0, end: size };
  headers["content-length"] = String(end - start);
  if (part.kind === "part") headers["content-range"] = `bytes ${start}-${end - 1}/${size}`;
  const status = part.kind === "part" ? 206 : 200;
  if (request.method === "HEAD" || size === 0) return new Response(null, { status, headers });
  // Bun applies the `Range` header to a whole file by itself, so an ignored one is removed from the request.
  if (part.kind === "whole" && range !== null) asked.delete("range");
  const blob = chosen.file.blob();
  return new Response(part.kind === "part" ? blob.slice(start, end) : blob, { status, headers });
}

/** A file as it is sent: compressed or uncompressed. */
interface Representation {
  file: SiteFile;
  encoding: "br" | "gzip" | null;
}

const SIBLINGS = [
  { encoding: "br", ending: ".br" },
  { encoding: "gzip", ending: ".gz" },
] as const;

/** Finds the compressed sibling that the client accepts. `varies`: whether other clients receive another representation. */
function representationOf(
  files: SiteFiles,
  path: string,
  file: SiteFile,
  accepted: string | null,
): { chosen: Representation; varies: boolean } {
  let chosen: Representation = { file, encoding: null };
  let varies = false;
  for (const { encoding, ending } of SIBLINGS) {
    const sibling = fileAt(files, path + ending);
    if (sibling === null) continue;
    varies = true;
    if (chosen.encoding === null && acceptsEncoding(accepted, encoding)) chosen = { file: sibling, encoding };
  }
  return { chosen, varies };
}
