import { notifications } from "@mantine/notifications";
import pLimit from "p-limit";
import { useSyncExternalStore } from "react";
import type { Administrator } from "../../../../client/admin/administrator.ts";
import { type Begun, endsWithSession } from "../../../api/begun.ts";
import { messageOf } from "../../../api/failure.ts";
import { noteFailure, queries } from "../../../api/server.ts";
import { UPLOADS_AT_ONCE } from "../limits.ts";

/** A file that is sent, was sent, or could not be. */
export interface Upload {
  id: number;
  bucket: string;
  key: string;
  total: number;
  loaded: number;
  state: { kind: "waiting" } | { kind: "running" } | { kind: "done" } | { kind: "failed"; message: string };
}

/** A file of the computer and the key that it gets. */
export interface ChosenFile {
  key: string;
  file: File;
}

// Uploads go on while other pages are shown.

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

/** In the order in which they were chosen. */
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

/** The browser asks before it leaves a page that sends files. */
function warn(event: BeforeUnloadEvent): void {
  if (!shown.every(isOver)) event.preventDefault();
}

/** Sends these files as `server` acts, some at a time. */
export function startUploads(server: Administrator, bucket: string, files: readonly ChosenFile[]): void {
  // The same listener is added once.
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

/** Ends an upload that has not finished, and forgets it. */
export function removeUpload(id: number): void {
  tasks.get(id)?.ending.abort(new DOMException("The upload was cancelled", "AbortError"));
  tasks.delete(id);
  changed();
}

// With the next session they would be sent with the rights of another key.
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
