import { existsSync, statSync } from "node:fs";
import { relative, sep } from "node:path";
import type { Clock } from "../../../../../kernel/clock.ts";
import type { CommitCapture, FileCapture } from "../../../../db/index.ts";
import { kindOf } from "../../layout.ts";
import type { FileStamp } from "./records.ts";
import type { Spool } from "./spool.ts";

const ENDING = ".db";

const IGNORED: FileCapture = { left() {}, opened() {}, frames() {}, broken() {}, closed() {} };

/** Takes the commits of all database files of a data directory to the spool. */
export class Capture implements CommitCapture {
  readonly #dataDirectory: string;
  readonly #spool: Spool;
  readonly #clock: Clock;
  /** Takes a place in the order of commits; set when the engine is there. */
  takePlace: () => number = () => 0;

  constructor(options: { dataDirectory: string; spool: Spool; clock: Clock }) {
    this.#dataDirectory = options.dataDirectory;
    this.#spool = options.spool;
    this.#clock = options.clock;
  }

  opening(file: string): FileCapture {
    const path = this.#nameOf(file);
    if (path === null) return IGNORED;
    const spool = this.#spool;
    const before = stampOf(file);
    const hadWal = (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
    // Before any commit of a migration.
    const [at, place] = [this.#clock.now(), this.takePlace()];
    return {
      left: (facts, { content, ...frames }) => spool.add({ type: "left", path, ...facts, ...frames }, content),
      opened: ({ file: id, page, created, isRewritten }) => {
        const after = stampOf(file);
        const isUnchanged = !hadWal && before?.mtimeMs === after?.mtimeMs && before?.bytes === after?.bytes;
        const isNew = created !== null;
        const stamp = isUnchanged ? after : null;
        spool.add({ type: "opened", path, file: id, page, isNew, isRewritten, at, place, stamp }, created);
      },
      frames: ({ pageBytes, first, salts, content }) =>
        spool.add({ type: "frames", path, pageBytes, first, salts }, content),
      broken: () => spool.add({ type: "broken", path }),
      closed: () => {
        const stamp = existsSync(`${file}-wal`) ? null : stampOf(file);
        spool.add({ type: "closed", path, place, stamp });
      },
    };
  }

  removing(file: string): void {
    const path = this.#nameOf(file);
    if (path === null) return;
    this.#spool.add({ type: "removed", path, at: this.#clock.now(), place: this.takePlace() });
  }

  /** Takes note that the content of a file in a bucket is on the disk. */
  content(file: string): void {
    this.#spool.add({ type: "content", path: relative(this.#dataDirectory, file).split(sep).join("/") });
  }

  /** Returns the path in the data directory, without its ending; null for a file that backups leave out. */
  #nameOf(file: string): string | null {
    const path = relative(this.#dataDirectory, file).split(sep).join("/");
    return kindOf(path) === "database" ? path.slice(0, -ENDING.length) : null;
  }
}

export function stampOf(file: string): FileStamp | null {
  const stats = statSync(file, { throwIfNoEntry: false });
  return stats === undefined ? null : { mtimeMs: stats.mtimeMs, bytes: stats.size };
}
