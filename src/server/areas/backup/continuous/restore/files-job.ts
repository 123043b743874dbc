import { mkdirSync } from "node:fs";
import { systemClock } from "../../../../../kernel/clock.ts";
import { reasonOf } from "../../../../../kernel/errors.ts";
import { serveJobs } from "../../../../db/processes/program.ts";
import { loadArchive } from "../format/archive.ts";
import type { LogPlace, StoredFile } from "../format/manifest.ts";
import { openStore, type StorePlace } from "../store/store.ts";
import { filesAt, restoreDatabases } from "./databases.ts";
import { requireRoom } from "./restore.ts";

/** `list`: all files. `fetch`: the newest state of one, into a folder of its own. */
export type FilesRequest = { op: "list"; to: StorePlace } | { op: "fetch"; to: StorePlace; id: string; folder: string };

/** A file in the store of a cluster. Path in the data directory. */
export interface FileInStore {
  id: string;
  path: string;
  number: number;
  nonce: number;
}

/** Files in the store, and a place of the cluster's log that all of them have reached; of a fetched one, where it was written. */
export interface FilesAnswer {
  place: LogPlace;
  files: (FileInStore & { written?: string })[];
}

const ENDING = ".db";

const described = ({ id, path, last: { number, nonce } }: StoredFile): FileInStore => ({
  id,
  path: path + ENDING,
  number,
  nonce,
});

/** null: the store has nothing of a cluster that all files have reached. Errors: BackupError; those of the store. */
async function filesOf(request: FilesRequest): Promise<FilesAnswer | null> {
  const store = openStore(request.to, systemClock);
  const archive = await loadArchive(store);
  const place = archive?.manifest.covered?.log;
  if (archive === null || place === undefined) return null;
  const files = filesAt(archive, null);
  if (request.op === "list") return { place, files: files.map(described) };
  const file = files.find(({ id, formerIds }) => id === request.id || formerIds.includes(request.id));
  if (file === undefined) return { place, files: [] };
  const { folder } = request;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  requireRoom(folder, [file]);
  // Whoever waits ends the process to cancel it.
  const { signal } = new AbortController();
  const options = { store, archive, files: [file], placeOf: () => null, folder, signal, onProgress: () => {} };
  const [restored] = await restoreDatabases(options);
  return restored === undefined ? null : { place, files: [{ ...described(file), written: restored.path }] };
}

/** Starts the program of the process that reads files of a cluster. */
export function start(): void {
  serveJobs<FilesRequest>({ run: filesOf, failureOf: (cause) => reasonOf(cause) });
}
