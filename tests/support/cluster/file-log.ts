/** A log of positions in a file, for tests of followers in processes of their own. */
import fs from "node:fs";
import type { LogEntry, LogRow } from "../../../src/server/cluster/protocol/statements.ts";

const PREFIX_BYTES = 4;

/** Appends positions to a file. */
export class FileLog {
  readonly #descriptor: number;
  #position: number;
  #nonce: string;

  constructor(path: string, last: { position: number; nonce: string } = { position: 0, nonce: "" }) {
    this.#descriptor = fs.openSync(path, "a");
    this.#position = last.position;
    this.#nonce = last.nonce;
  }

  get position(): number {
    return this.#position;
  }

  append(body: readonly LogRow[]): void {
    const previous = this.#nonce;
    this.#position += 1;
    this.#nonce = `n${this.#position}`;
    const rows = body.map(({ file, number, content }) => ({
      file,
      number,
      content: Buffer.from(content).toString("base64"),
    }));
    const entry = { position: this.#position, epoch: 1, nonce: this.#nonce, previous, body: rows };
    const text = Buffer.from(JSON.stringify(entry));
    const prefix = Buffer.alloc(PREFIX_BYTES);
    prefix.writeUInt32BE(text.byteLength);
    fs.writeSync(this.#descriptor, Buffer.concat([prefix, text]));
  }

  close(): void {
    fs.closeSync(this.#descriptor);
  }
}

/** Reads what is new in the file of a log. */
export class FileLogReader {
  readonly #path: string;
  #offset = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /** Returns up to `max` entries behind those that were read before. */
  read(max: number): LogEntry[] {
    const entries: LogEntry[] = [];
    const descriptor = fs.openSync(this.#path, "r");
    try {
      const { size } = fs.fstatSync(descriptor);
      const prefix = Buffer.alloc(PREFIX_BYTES);
      while (entries.length < max && this.#offset + PREFIX_BYTES <= size) {
        fs.readSync(descriptor, prefix, 0, PREFIX_BYTES, this.#offset);
        const length = prefix.readUInt32BE();
        if (this.#offset + PREFIX_BYTES + length > size) break;
        const text = Buffer.alloc(length);
        fs.readSync(descriptor, text, 0, length, this.#offset + PREFIX_BYTES);
        this.#offset += PREFIX_BYTES + length;
        const entry = JSON.parse(text.toString()) as Omit<LogEntry, "body"> & {
          body: (Omit<LogRow, "content"> & { content: string })[];
        };
        const body = entry.body.map((row) => ({ ...row, content: new Uint8Array(Buffer.from(row.content, "base64")) }));
        entries.push({ ...entry, body });
      }
    } finally {
      fs.closeSync(descriptor);
    }
    return entries;
  }
}
