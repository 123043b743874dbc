import { relative, sep } from "node:path";
import { decodeCommitRow } from "../../db/capture/commit-row.ts";
import type { FileCapture } from "../../db/index.ts";
import { CommitRows } from "../entries/commit-rows.ts";
import { encodeContent, type FileState } from "../entries/content.ts";
import type { LogRow } from "../protocol/statements.ts";
import { WHOLE_MAX_BYTES } from "./limits.ts";

/** A file as the log has it. */
export interface LoggedFile extends FileState {
  /** Id in its commit row. */
  id: string;
}

export interface CapturedFilesOptions {
  dataDirectory: string;
  /** Returns what the log has of a file, by its path in the data directory; null: nothing. */
  logged: (path: string) => LoggedFile | null;
  /** Takes rows, in their order. */
  append: (rows: readonly LogRow[]) => void;
  /** Told of a file that the log cannot follow: nothing more may be committed. */
  failed: (cause: Error) => void;
}

const PAGE_BYTES_AT = 16;

/** Makes rows of the log of what happens to the owner's database files. */
export class CapturedFiles {
  readonly #options: CapturedFilesOptions;
  /** Files that this owner has opened. */
  readonly #logged = new Map<string, LoggedFile | null>();

  constructor(options: CapturedFilesOptions) {
    this.#options = options;
  }

  /** Each file that this owner has opened, as the log has it; null: it was removed. */
  get logged(): Iterable<readonly [path: string, file: LoggedFile | null]> {
    return this.#logged;
  }

  opening(file: string): FileCapture {
    const path = this.#nameOf(file);
    const { append } = this.#options;
    let opened: OpenedFile | null = null;
    const attempt = (work: (opened: OpenedFile) => void): void => {
      if (opened === null) return;
      try {
        work(opened);
      } catch (cause) {
        this.#failed(path, cause);
      }
    };
    return {
      // The log has them, or the file was set aside before it came to this.
      left() {},
      opened: ({ file: id, page, created, isRewritten, before, whole }) => {
        const found = this.#loggedOf(path);
        // A file without a commit does not say which one it is.
        const logged = found?.number === 0 && before.number === 0 && found.id !== id ? null : found;
        if (created === null && logged !== null && !isSame(logged, { id, ...before })) {
          this.#failed(path, new Error("it is not what the log has of it"));
          return false;
        }
        const last = { id, ...before };
        opened = { path, page, id, whole, rows: new CommitRows({ id, commitPage: page, last }) };
        this.#logged.set(path, last);
        if (created !== null) append([createdRow({ path, id, number: before.number }, created)]);
        else if (logged === null || isRewritten) {
          attempt((one) => this.#takeWhole(one));
          return true;
        }
        return false;
      },
      frames: (frames) =>
        attempt((one) => {
          append(one.rows.take(frames));
          this.#logged.set(path, { id: one.id, ...one.rows.last });
        }),
      broken: () => attempt((one) => this.#takeWhole(one)),
      closed() {},
    };
  }

  removing(file: string): void {
    const path = this.#nameOf(file);
    const logged = this.#loggedOf(path);
    this.#logged.set(path, null);
    if (logged === null) return;
    this.#options.append([
      { file: logged.id, number: logged.number, content: encodeContent({ kind: "removed", path }) },
    ]);
  }

  /** Gives the log the whole content, where no commit describes how it came to be. Errors: it is too large, or has no commit row. */
  #takeWhole(opened: OpenedFile): void {
    const { path, page, id } = opened;
    const content = opened.whole();
    if (content.byteLength > WHOLE_MAX_BYTES)
      throw new Error(`it has ${content.byteLength} bytes, and the log takes at most ${WHOLE_MAX_BYTES} as they are`);
    const last = stateIn(content, page);
    opened.rows = new CommitRows({ id, commitPage: page, last });
    this.#logged.set(path, { id, ...last });
    this.#options.append([createdRow({ path, id, number: last.number }, content)]);
  }

  #loggedOf(path: string): LoggedFile | null {
    const known = this.#logged.get(path);
    return known === undefined ? this.#options.logged(path) : known;
  }

  #failed(path: string, cause: unknown): void {
    this.#options.failed(new Error(`The log cannot follow the file ${path}`, { cause }));
  }

  #nameOf(file: string): string {
    return relative(this.#options.dataDirectory, file).split(sep).join("/");
  }
}

interface OpenedFile {
  path: string;
  id: string;
  /** Page of the commit row. */
  page: number;
  whole: () => Uint8Array;
  rows: CommitRows;
}

const isSame = (one: LoggedFile, other: LoggedFile): boolean =>
  one.id === other.id && one.number === other.number && one.nonce === other.nonce;

const createdRow = (of: { path: string; id: string; number: number }, content: Uint8Array): LogRow => ({
  file: of.id,
  number: of.number,
  content: encodeContent({ kind: "created", path: of.path, content }),
});

/** Reads the commit row of a database. */
function stateIn(content: Uint8Array, page: number): FileState {
  const pageBytes = new DataView(content.buffer, content.byteOffset).getUint16(PAGE_BYTES_AT);
  const row = decodeCommitRow(content.subarray((page - 1) * pageBytes, page * pageBytes));
  if (row === null) throw new Error("it has no commit row");
  return { number: row.number, nonce: row.nonce };
}
