import { gunzip } from "node:zlib";

// Packs files for browsers into one file: the length of the header in 4 bytes, the header as JSON, then the representations of the
// files one after another. `scripts/client/packing.ts` writes it.

export const ENCODINGS = ["br", "zstd", "gzip"] as const;
/** An encoding, as `Accept-Encoding` names it; the smallest one comes first. */
export type Encoding = (typeof ENCODINGS)[number];

export interface Representation {
  encoding: Encoding;
  /** The offset behind the header, in bytes. */
  start: number;
  size: number;
}

/** A packed file, stored in compressed forms only, gzip among them. */
export interface PackedFile {
  etag: string;
  /** Whether its name contains a hash of its content. */
  isImmutable: boolean;
  /** The uncompressed size in bytes. */
  size: number;
  representations: readonly Representation[];
}

type PackHeader = Readonly<Record<string, PackedFile>>;

const LENGTH_BYTES = 4;

/** Writes a pack. `encodings`: the encodings of each file. */
export function writePack(
  files: ReadonlyMap<string, { content: Uint8Array; isImmutable: boolean; etag: string }>,
  encodings: readonly Encoding[],
  compress: (content: Uint8Array, encoding: Encoding) => Uint8Array,
): Uint8Array {
  const header: Record<string, PackedFile> = {};
  const parts: Uint8Array[] = [];
  let start = 0;
  for (const [name, { content, isImmutable, etag }] of files) {
    const representations = encodings.map((encoding) => {
      const compressed = compress(content, encoding);
      const representation = { encoding, start, size: compressed.length };
      parts.push(compressed);
      start += compressed.length;
      return representation;
    });
    header[name] = { etag, isImmutable, size: content.length, representations };
  }
  const text = new TextEncoder().encode(JSON.stringify(header));
  const length = new Uint8Array(LENGTH_BYTES);
  new DataView(length.buffer).setUint32(0, text.length);
  return Buffer.concat([length, text, ...parts]);
}

export type Pack = Awaited<ReturnType<typeof readPack>>;

export async function readPack(path: string) {
  const file = Bun.file(path);
  const length = new DataView(await file.slice(0, LENGTH_BYTES).arrayBuffer()).getUint32(0);
  const begin = LENGTH_BYTES + length;
  // Written by `writePack`.
  const header = (await file.slice(LENGTH_BYTES, begin).json()) as PackHeader;
  const contentOf = ({ start, size }: Representation): Blob => file.slice(begin + start, begin + start + size);
  return {
    header,
    contentOf,
    /** Decompresses a file on another thread. */
    async plainOf({ representations }: PackedFile): Promise<Blob> {
      const gzipped = representations.find(({ encoding }) => encoding === "gzip");
      if (gzipped === undefined) throw new Error("A packed file lacks its gzip representation");
      const compressed = await contentOf(gzipped).arrayBuffer();
      const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
      gunzip(compressed, (error, plain) => (error === null ? resolve(plain) : reject(error)));
      // Node's type of the buffer leaves open whether it is shared, which this one is not.
      return new Blob([(await promise) as Buffer<ArrayBuffer>]);
    },
  };
}
