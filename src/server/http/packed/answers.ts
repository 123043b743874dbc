import { emptyAnswer } from "../bodies/file-answer.ts";
import { isUnmodified } from "../bodies/range.ts";
import type { Encoding, Pack, PackedFile } from "./pack.ts";

/** Whether `Accept-Encoding` names the encoding with a weight other than 0. `*` alone names none: few clients mean it. */
export function acceptsEncoding(header: string | null, encoding: Encoding): boolean {
  if (header === null || !header.includes(encoding)) return false;
  return header.split(",").some((part) => {
    const [name = "", ...parameters] = part.split(";").map((text) => text.trim().toLowerCase());
    return name === encoding && !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter));
  });
}

/** `Cache-Control` of files whose names change with their content. */
export const IMMUTABLE = "public, max-age=31536000, immutable";

/**
 * Answers with a file of a pack, in the smallest encoding that the client accepts, uncompressed where it accepts none; null: the
 * pack has no such file.
 */
export async function packedAnswer(
  request: Request,
  { header, contentOf, plainOf }: Pack,
  name: string,
  headers: Readonly<Record<string, string>>,
): Promise<Response | null> {
  const file = Object.hasOwn(header, name) ? header[name] : undefined;
  if (file === undefined) return null;
  const { own, etag, representation } = described(file, request.headers.get("accept-encoding"));
  const all = { ...headers, ...own };
  const content = representation === null ? await plainOf(file) : contentOf(representation);
  return fileAnswer(request, { headers: all, etag, content });
}

/** Describes the file in the smallest accepted encoding. `representation`: null for the uncompressed file. */
function described(file: PackedFile, accepted: string | null) {
  const representation = file.representations.find(({ encoding }) => acceptsEncoding(accepted, encoding)) ?? null;
  // A strong tag identifies bytes, so each representation has its own.
  const etag = `"${file.etag}${representation === null ? "" : `-${representation.encoding}`}"`;
  const own: Record<string, string> = {
    "cache-control": file.isImmutable ? IMMUTABLE : "no-cache",
    vary: "Accept-Encoding",
    etag,
  };
  if (representation !== null) own["content-encoding"] = representation.encoding;
  return { own, etag, representation };
}

/** Answers with a file; 304 if the client's copy is current. */
export function fileAnswer(
  request: Request,
  { headers, etag, content }: { headers: Record<string, string>; etag: string; content: Blob },
): Response {
  if (isUnmodified(request.headers, { etag, modifiedMs: null })) {
    return emptyAnswer(request, { status: 304, headers, sizeBytes: content.size });
  }
  // Bun applies the `Range` header to a file by itself, and a part of a compressed file is useless.
  request.headers.delete("range");
  return new Response(content, { headers: { ...headers, "content-length": String(content.size) } });
}
