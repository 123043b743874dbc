/** Files of an owner, whose commits become rows of a log. */
import { mkdirSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { systemClock } from "../../../src/kernel/clock.ts";
import { systemIds } from "../../../src/kernel/ids.ts";
import { CommitRows } from "../../../src/server/cluster/entries/commit-rows.ts";
import { encodeContent, type FileState } from "../../../src/server/cluster/entries/content.ts";
import type { LogRow } from "../../../src/server/cluster/protocol/statements.ts";
import type { WalFrames } from "../../../src/server/db/capture/types.ts";
import { createStorageEngine, type StorageEngine } from "../../../src/server/db/index.ts";
import type { DatabaseFile } from "../../../src/server/db/types.ts";

const TABLE = `CREATE TABLE IF NOT EXISTS "notes" ("id" INTEGER PRIMARY KEY, "text" TEXT NOT NULL, "copies" INTEGER NOT NULL);
  CREATE INDEX IF NOT EXISTS "notes_text" ON "notes" ("text")`;

export interface OwnerFiles {
  engine: StorageEngine;
  directory: string;
  /** Opens a file with a table of notes, and makes it if it is missing. */
  open(path: string): DatabaseFile;
  /** Says that a closed file is about to be removed. */
  removing(path: string): void;
  stop(): Promise<void>;
}

interface OwnerFilesOptions {
  /** The state of the one file that is there already. */
  known?: FileState;
  onFrames?(frames: WalFrames): void;
  onOpened?(facts: { file: string; page: number }): void;
}

/** Opens files in a directory. `onRow` gets the rows of each commit, in the turn of the commit. */
export function openOwnerFiles(
  directory: string,
  onRow: (row: LogRow) => void,
  options: OwnerFilesOptions = {},
): OwnerFiles {
  const start = options.known ?? { number: 0, nonce: 0 };
  const failures: unknown[] = [];
  const states = new Map<string, FileState>();
  const ids = new Map<string, string>();
  const nameOf = (path: string): string => relative(directory, path);
  const engine = createStorageEngine({
    clock: systemClock,
    capture: {
      opening(file) {
        const path = nameOf(file);
        let rows: CommitRows | null = null;
        return {
          left() {},
          opened({ file: id, page, created }) {
            if (created !== null)
              onRow({ file: id, number: 0, content: encodeContent({ kind: "created", path, content: created }) });
            ids.set(path, id);
            rows = new CommitRows({ id, commitPage: page, last: states.get(id) ?? start });
            options.onOpened?.({ file: id, page });
          },
          frames(frames) {
            options.onFrames?.(frames);
            for (const row of rows?.take(frames) ?? []) onRow(row);
            if (rows !== null) states.set(ids.get(path) ?? "", rows.last);
          },
          broken: () => void failures.push(`frames of ${path} were not read`),
          closed() {},
        };
      },
      removing(file) {
        const path = nameOf(file);
        const id = ids.get(path) ?? "";
        const number = states.get(id)?.number ?? 0;
        onRow({ file: id, number, content: encodeContent({ kind: "removed", path }) });
      },
    },
    onFailure: (_, cause) => void failures.push(cause),
    ids: systemIds,
  });
  return {
    engine,
    directory,
    open(path) {
      mkdirSync(dirname(join(directory, path)), { recursive: true });
      return engine.open(join(directory, path), { migrate: (sqlite) => sqlite.run(TABLE) });
    },
    removing: (path) => engine.removing(join(directory, path)),
    async stop() {
      await engine.stop();
      if (failures.length > 0) throw new AggregateError(failures, "a commit was not taken");
    },
  };
}
