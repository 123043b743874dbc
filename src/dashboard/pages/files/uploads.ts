import { notifications } from "@mantine/notifications";
import pLimit from "p-limit";
import { useSyncExternalStore } from "react";
import type { Administrator } from "../../../client/admin/administrator.ts";
import { messageOf, noteFailure, queries } from "../../api/server.ts";
import { type Begun, endsWithSession } from "../../api/session.tsx";
import { numberText } from "../../parts/format.tsx";

/** Number of concurrent uploads, and limit of the files of a dropped folder. */
const UPLOADS_AT_ONCE = 3;

/** Upload of a file, in any state. */
export interface Upload {
  id: number;
  bucket: string;
  key: string;
  total: number;
  loaded: number;
  state: { kind: "waiting" } | { kind: "running" } | { kind: "done" } | { kind: "failed"; message: string };
}

/** Local file with its future key. */
export interface ChosenFile {
  key: string;
  file: File;
}

// Uploads continue while other pages are shown.

interface Task extends Upload {
  server: Administrator;
  file: File;
  ending: AbortController;
}

const atOnce = pLimit(UPLOADS_AT_ONCE);
const tasks = new Map<number, Task>();
const listeners = new Set<() => void>();
let shown: readonly Upload[] = [];
let lastId = 0;

function changed(): void {
  shown = [...tasks.values()].map(({ server: _, file: __, ending: ___, ...upload }) => upload);
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Returns uploads in the order in which they were chosen. */
export const useUploads = (): readonly Upload[] => useSyncExternalStore(subscribe, () => shown);

function update(id: number, changes: Partial<Task>): void {
  const task = tasks.get(id);
  if (task === undefined) return;
  tasks.set(id, { ...task, ...changes });
  changed();
}

async function send(id: number): Promise<void> {
  const task = tasks.get(id);
  if (task === undefined) return;
  const { server, bucket, key, file, ending } = task;
  update(id, { state: { kind: "running" }, loaded: 0 });
  try {
    await server
      .storage(bucket)
      .upload(key, file, { signal: ending.signal, onProgress: ({ loaded }) => update(id, { loaded }) });
    update(id, { state: { kind: "done" }, loaded: file.size });
    void queries.invalidateQueries({ queryKey: ["files", bucket] });
  } catch (error) {
    if (ending.signal.aborted) return;
    noteFailure(error);
    update(id, { state: { kind: "failed", message: messageOf(error) } });
    notifications.show({ color: "red", title: `${key} was not uploaded`, message: messageOf(error) });
  }
}

/** Makes the browser ask before it leaves the page during uploads. */
function warn(event: BeforeUnloadEvent): void {
  if (!shown.every(isOver)) event.preventDefault();
}

/** Uploads files with the rights of `server`, some at a time. */
export function startUploads(server: Administrator, bucket: string, files: readonly ChosenFile[]): void {
  // Adding the same listener again has no effect.
  addEventListener("beforeunload", warn);
  endsWithSession(UPLOADS);
  for (const { key, file } of files) {
    const id = ++lastId;
    const ending = new AbortController();
    tasks.set(id, { id, bucket, key, file, server, ending, total: file.size, loaded: 0, state: { kind: "waiting" } });
    void atOnce(() => send(id));
  }
  changed();
}

export function retryUpload(id: number): void {
  update(id, { state: { kind: "waiting" } });
  void atOnce(() => send(id));
}

/** Aborts an unfinished upload, and removes it. */
export function removeUpload(id: number): void {
  tasks.get(id)?.ending.abort(new DOMException("The upload was cancelled", "AbortError"));
  tasks.delete(id);
  changed();
}

// Ends with the session. A later session would send the files with the rights of another key.
const UPLOADS: Begun = {
  finish: async () => {},
  forget() {
    for (const { ending } of tasks.values()) ending.abort(new DOMException("The session has ended", "AbortError"));
    tasks.clear();
    changed();
  },
};

export const isOver = ({ state }: Upload): boolean => state.kind === "done" || state.kind === "failed";

export function clearUploads(): void {
  for (const upload of shown) if (isOver(upload)) tasks.delete(upload.id);
  changed();
}

const DROPPED_FILES_MAX = 1_000;

/**
 * Returns the dropped files, those of folders with their paths. Keys start with `prefix`. Errors: more than DROPPED_FILES_MAX
 * files, instead of leaving some out silently.
 */
export async function droppedFiles(transfer: DataTransfer, prefix: string): Promise<ChosenFile[]> {
  // The browser empties the list of items after this event.
  const items = [...transfer.items].map((item) => ({ entry: item.webkitGetAsEntry(), file: item.getAsFile() }));
  const entries = items.flatMap(({ entry }) => entry ?? []);
  // Items dragged from another page are not in the file system.
  const found: ChosenFile[] = chosenFiles(
    items.flatMap(({ entry, file }) => (entry === null && file !== null ? file : [])),
    prefix,
  );
  for (const entry of entries) await collect(entry, prefix, found);
  return found;
}

async function collect(entry: FileSystemEntry, prefix: string, found: ChosenFile[]): Promise<void> {
  if (entry.isFile) {
    if (found.length >= DROPPED_FILES_MAX) {
      throw new Error(`More than ${numberText(DROPPED_FILES_MAX)} files are too many at once: drop a part of them`);
    }
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    found.push({ key: prefix + file.name, file });
    return;
  }
  // A directory reader returns at most a hundred entries at a time.
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const next = () => new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
  for (let entries = await next(); entries.length > 0; entries = await next()) {
    for (const one of entries) await collect(one, `${prefix}${entry.name}/`, found);
  }
}

export const chosenFiles = (files: readonly File[], prefix: string): ChosenFile[] =>
  files.map((file) => ({ key: prefix + file.name, file }));
