import { matchesEtag } from "../exchange/range.ts";
import { acceptsEncoding } from "./encoding.ts";
import { IMMUTABLE_SECONDS } from "./limits.ts";
import type { Pack, PackedFile } from "./pack.ts";

const IMMUTABLE = `public, max-age=${IMMUTABLE_SECONDS}, immutable`;

/** The answer with a file of a pack, in the smallest form that the client accepts; null: the pack has no such file. */
export function packedAnswer(
  request: Request,
  { header, contentOf }: Pack,
  name: string,
  headers: Readonly<Record<string, string>>,
): Response | null {
  const file = Object.hasOwn(header, name) ? header[name] : undefined;
  if (file === undefined) return null;
  const { own, etag, representation } = described(file, request.headers.get("accept-encoding"));
  return fileAnswer(request, { headers: { ...headers, ...own }, etag, content: contentOf(representation) });
}

function described(file: PackedFile, accepted: string | null) {
  const representation = file.representations.find(
    ({ encoding }) => encoding === null || acceptsEncoding(accepted, encoding),
  );
  if (representation === undefined) throw new Error("A packed file lacks its plain representation");
  const { encoding } = representation;
  // Each representation has its own, as a strong tag is of bytes.
  const etag = `"${file.etag}${encoding === null ? "" : `-${encoding}`}"`;
  const own: Record<string, string> = {
    "cache-control": file.isImmutable ? IMMUTABLE : "no-cache",
    vary: "Accept-Encoding",
    etag,
  };
  if (encoding !== null) own["content-encoding"] = encoding;
  return { own, etag, representation };
}

/** 304 where the client has it. */
export function fileAnswer(
  request: Request,
  { headers, etag, content }: { headers: Record<string, string>; etag: string; content: Blob },
): Response {
  if (matchesEtag(request.headers.get("if-none-match"), etag)) return new Response(null, { status: 304, headers });
  // Bun applies the header `Range` to a file by itself, and a part of a compressed file is of no use.
  request.headers.delete("range");
  return new Response(content, { headers: { ...headers, "content-length": String(content.size) } });
}
