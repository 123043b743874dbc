// Files for browsers in one file: the length of the header in 4 bytes, the header as JSON, then the representations of the
// files one after another. `scripts/client/packing.ts` writes it.

export const ENCODINGS = ["br", "zstd", "gzip"] as const;
/** As `Accept-Encoding` names it; the smallest one comes first. */
export type Encoding = (typeof ENCODINGS)[number];

export interface Representation {
  /** null: as it is. */
  encoding: Encoding | null;
  /** Behind the header, in bytes. */
  start: number;
  size: number;
}

export interface PackedFile {
  etag: string;
  /** Its name has a hash of its content. */
  isImmutable: boolean;
  representations: readonly Representation[];
}

export type PackHeader = Readonly<Record<string, PackedFile>>;

const LENGTH_BYTES = 4;

/** `compress` gives null for an encoding that it has no use for. */
export function writePack(
  files: ReadonlyMap<string, { content: Uint8Array; isImmutable: boolean; etag: string }>,
  compress: (content: Uint8Array, encoding: Encoding) => Uint8Array,
): Uint8Array {
  const header: Record<string, PackedFile> = {};
  const parts: Uint8Array[] = [];
  let start = 0;
  const add = (encoding: Encoding | null, content: Uint8Array): Representation => {
    const representation = { encoding, start, size: content.length };
    parts.push(content);
    start += content.length;
    return representation;
  };
  for (const [name, { content, isImmutable, etag }] of files) {
    const compressed = ENCODINGS.map((encoding) => add(encoding, compress(content, encoding)));
    header[name] = { etag, isImmutable, representations: [...compressed, add(null, content)] };
  }
  const text = new TextEncoder().encode(JSON.stringify(header));
  const length = new Uint8Array(LENGTH_BYTES);
  new DataView(length.buffer).setUint32(0, text.length);
  return Buffer.concat([length, text, ...parts]);
}

export interface Pack {
  header: PackHeader;
  contentOf(representation: Representation): Blob;
}

export async function readPack(path: string): Promise<Pack> {
  const file = Bun.file(path);
  const length = new DataView(await file.slice(0, LENGTH_BYTES).arrayBuffer()).getUint32(0);
  const begin = LENGTH_BYTES + length;
  // Written by `writePack`.
  const header = (await file.slice(LENGTH_BYTES, begin).json()) as PackHeader;
  return {
    header,
    contentOf: ({ start, size }) => file.slice(begin + start, begin + start + size),
  };
}
