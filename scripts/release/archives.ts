import { Readable } from "node:stream";
import { packTar } from "modern-tar";
import { ZipFile } from "yazl";

// Archives that are the same bytes for the same files: names are sorted, times and owners fixed, and compression is that of
// libraries which compress equally on every machine.

const COMPRESSION_LEVEL = 9;

/** A file of an archive. */
export interface ArchivedFile {
  path: string;
  content: Uint8Array;
  isExecutable: boolean;
}

const modeOf = ({ isExecutable }: ArchivedFile): number => (isExecutable ? 0o755 : 0o644);

const sorted = (files: readonly ArchivedFile[]): ArchivedFile[] =>
  files.toSorted((one, other) => (one.path < other.path ? -1 : 1));

/** Packs files as a gzipped tar; each has the time `at`. */
export async function tarOf(files: readonly ArchivedFile[], at: Date): Promise<Uint8Array> {
  const entries = sorted(files).map((file) => ({
    header: { name: file.path, size: file.content.length, mtime: at, mode: modeOf(file), type: "file" as const },
    body: file.content,
  }));
  return Bun.gzipSync(new Uint8Array(await packTar(entries)), { library: "libdeflate", level: COMPRESSION_LEVEL });
}

/** Packs files as a zip, for Windows; each has the time `at`. */
export async function zipOf(files: readonly ArchivedFile[], at: Date): Promise<Uint8Array> {
  const zip = new ZipFile();
  for (const file of sorted(files))
    zip.addBuffer(Buffer.from(file.content), file.path, { mtime: at, mode: modeOf(file), forceDosTimestamp: true });
  zip.end();
  const chunks: Buffer[] = [];
  for await (const chunk of Readable.from(zip.outputStream)) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
