import { brotliCompressSync, constants, zstdCompressSync } from "node:zlib";
import { ENCODINGS, type Encoding, writePack } from "../../src/server/http/packed/pack.ts";

const ETAG_CHARACTERS = 22;

const GZIP_LEVEL = 12;
/** Compresses by libdeflate, whose output is 2% smaller than zlib's, and equal on every machine. */
export const gzipped = (content: Uint8Array): Uint8Array =>
  // Bun requires a copy of this type.
  Bun.gzipSync(new Uint8Array(content), { library: "libdeflate", level: GZIP_LEVEL });

const COMPRESSORS: Readonly<Record<Encoding, (content: Uint8Array) => Uint8Array>> = {
  br: (content) => brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }),
  zstd: (content) => zstdCompressSync(content, { params: { [constants.ZSTD_c_compressionLevel]: 19 } }),
  gzip: gzipped,
};

/** The encodings for browsers. Those that accept zstd accept br; gzip is for plain HTTP, where they accept neither. */
export const FOR_BROWSERS = ["br", "gzip"] as const satisfies readonly Encoding[];

/**
 * Packs files as a server serves them (src/server/http/packed), compressed once. Names `chunk-…` contain a hash. `encodings`: all
 * by default.
 */
export function packed(files: ReadonlyMap<string, Uint8Array>, encodings: readonly Encoding[] = ENCODINGS): Uint8Array {
  const described = [...files].map(([name, content]) => {
    const etag = new Bun.CryptoHasher("sha256").update(content).digest("base64url").slice(0, ETAG_CHARACTERS);
    return [name, { content, etag, isImmutable: name.startsWith("chunk-") }] as const;
  });
  return writePack(new Map(described), encodings, (content, encoding) => COMPRESSORS[encoding](content));
}
