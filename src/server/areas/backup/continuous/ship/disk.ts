import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../../../../kernel/clock.ts";
import { CONTINUOUS_FOLDER, scanFiles } from "../../layout.ts";
import { stampOf } from "../capture/capture.ts";
import { decodeRecords, type FileStamp, type LeftFrames, type SpoolRecord } from "../capture/records.ts";
import type { Archive } from "../format/archive.ts";
import { openStore, type Store, type StorePlace } from "../store/store.ts";
import { Contents } from "./contents.ts";
import { PlainFiles } from "./plain.ts";
import { type Scanned, type ScanOptions, scanFile } from "./scan.ts";
import { leftIn } from "./snapshot.ts";
import { HashTables } from "./tables.ts";

const ENDING = ".db";
const COPY_ENDING = ".copy";
const DUE = ".due";

/** The databases of a data directory, for the storing process. Paths are those in it, without `.db`. */
export interface ShipDisk {
  databases(): Iterable<string>;
  exists(path: string): boolean;
  /** Whether a database has a WAL. */
  isOpen(path: string): boolean;
  stamp(path: string): FileStamp | null;
  /** Compares a database with what is known of it, or copies it. Errors: those of `scanFile`. */
  scan(path: string, options: Omit<ScanOptions, "file" | "path" | "temporary">): Scanned;
  /** Reads the commits in the WAL that a crash has left of a database, after a sync of it. Errors: those of `takeSnapshot`. */
  left(path: string): { left: LeftFrames; content: Uint8Array<ArrayBuffer> }[];
  /** Reads the records of a spooled file. */
  records(file: { path: string; bytes: number }): Iterable<{ record: SpoolRecord; content: Uint8Array<ArrayBuffer> }>;
  removeCopy(path: string): void;
}

/** Parts of the storing process that touch disk and store. */
export interface ShipParts {
  store: Store;
  disk: ShipDisk;
  tables: Pick<HashTables, "read" | "save" | "forget">;
  plain: (archive: Archive) => Pick<PlainFiles, "collect">;
  contents: (archive: Archive) => Pick<Contents, "add" | "settle" | "reconcile" | "missing" | "lag">;
}

export function partsOf({ dataDirectory, to }: { dataDirectory: string; to: StorePlace }, clock: Clock): ShipParts {
  const store = openStore(to, clock);
  return {
    store,
    disk: openDisk(dataDirectory),
    tables: new HashTables(dataDirectory),
    plain: (archive) => new PlainFiles({ dataDirectory, store, archive }),
    contents: (archive) => new Contents({ dataDirectory, store, archive }),
  };
}

/** Opens the databases of a data directory, and removes copies that a former process has left. */
function openDisk(dataDirectory: string): ShipDisk {
  const folder = join(dataDirectory, CONTINUOUS_FOLDER);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(folder)) if (name.endsWith(COPY_ENDING)) rmSync(join(folder, name));
  const fileOf = (path: string): string => join(dataDirectory, `${path}${ENDING}`);
  return {
    *databases() {
      for (const { path, kind } of scanFiles(dataDirectory)) {
        if (kind === "database") yield path.slice(0, -ENDING.length);
      }
    },
    exists: (path) => existsSync(fileOf(path)),
    isOpen: (path) => existsSync(`${fileOf(path)}-wal`),
    stamp: (path) => stampOf(fileOf(path)),
    scan(path, options) {
      // A copy that waits to be stored and one that a comparison makes may be there at the same time.
      const name = `${options.id}${options.purpose === "copy" ? DUE : ""}${COPY_ENDING}`;
      return scanFile({ ...options, path, file: fileOf(path), temporary: join(folder, name) });
    },
    left: (path) => leftIn(fileOf(path)),
    *records({ path, bytes }) {
      const descriptor = openSync(path, "r");
      try {
        yield* decodeRecords(bytes, (into, offset) => void readSync(descriptor, into, 0, into.byteLength, offset));
      } finally {
        closeSync(descriptor);
      }
    },
    removeCopy: (path) => rmSync(path, { force: true }),
  };
}
