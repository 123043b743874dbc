import { useCallback, useRef, useState } from "react";
import type { Bucket, FileEntry, Uploadable, UploadOptions, UploadProgress } from "../storage/types.ts";
import type { FormOptions } from "../tables/forms.ts";
import { PlatformError } from "../transport/errors.ts";

interface SendingState<Result> {
  status: "idle" | "uploading" | "done" | "failed";
  /** Progress of the current or last upload. */
  progress: UploadProgress;
  /** Answer of the server; null until the upload is complete. */
  result: Result | null;
  /** Reason of the failure; null otherwise, also after a cancelled upload. */
  error: PlatformError | null;
}

interface UploadState extends Omit<SendingState<FileEntry>, "result"> {
  /** Stored file; null until the upload is complete. */
  file: FileEntry | null;
}

export interface UploadResult extends UploadState {
  /** Uploads a file like `upload` of the bucket, including its errors. A further call cancels the previous upload. */
  upload(key: string, file: Uploadable, options?: Omit<UploadOptions, "onProgress" | "signal">): Promise<FileEntry>;
  /** Cancels the current upload. */
  cancel(): void;
}

const IDLE = { status: "idle", progress: { loaded: 0, total: 0 }, result: null, error: null } as const;

/** Sends one thing at a time, and shows its progress. */
function useSending<Result>() {
  const [state, setState] = useState<SendingState<Result>>(IDLE);
  const current = useRef<AbortController | null>(null);
  const cancel = useCallback(() => current.current?.abort(), []);
  const send = useCallback(
    async <Sent extends Result>(work: (options: FormOptions) => Promise<Sent>): Promise<Sent> => {
      current.current?.abort();
      const own = new AbortController();
      current.current = own;
      // Updates of an earlier upload are ignored.
      const show = (next: SendingState<Result>) => {
        if (current.current === own) setState(next);
      };
      let progress: UploadProgress = IDLE.progress;
      show({ ...IDLE, status: "uploading" });
      const onProgress = (next: UploadProgress) => {
        progress = next;
        show({ ...IDLE, status: "uploading", progress });
      };
      try {
        const result = await work({ onProgress, signal: own.signal });
        show({ status: "done", progress, result, error: null });
        return result;
      } catch (error) {
        const because = error instanceof PlatformError ? error : null;
        show(own.signal.aborted ? IDLE : { status: "failed", progress, result: null, error: because });
        throw error;
      }
    },
    [],
  );
  return { state, cancel, send };
}

/** Returns an upload with its progress: `useUpload(client.storage("posters"))`. Uploads continue after the component unmounts. */
export function useUpload(bucket: Bucket): UploadResult {
  const { state, cancel, send } = useSending<FileEntry>();
  const upload: UploadResult["upload"] = useCallback(
    (key, file, options) => send((own) => bucket.upload(key, file, { ...options, ...own })),
    [bucket, send],
  );
  const { result: file, ...shown } = state;
  return { ...shown, file, upload, cancel };
}

/** Writes of a table that may have files. */
interface WritableTable {
  insert: (...given: never[]) => Promise<unknown>;
  update: (...given: never[]) => Promise<unknown>;
}

type RecordFrom<Table extends WritableTable> = Awaited<ReturnType<Table["insert"]>>;

export interface SaveResult<Table extends WritableTable> extends Omit<SendingState<unknown>, "result"> {
  /** Record of the last write; null until it is complete. */
  record: RecordFrom<Table> | null;
  /** Inserts a record like `insert` of the table, including its errors. A further call cancels the previous write. */
  insert(record: Parameters<Table["insert"]>[0]): Promise<RecordFrom<Table>>;
  /** Updates a record like `update` of the table. A further call cancels the previous write. */
  update(id: string, changes: Parameters<Table["update"]>[1]): Promise<RecordFrom<Table>>;
  /** Cancels the current write, if it has files. */
  cancel(): void;
}

/**
 * Returns writes of records with their files, and the progress: `useSave(client.db("shared").table("films"))`. They continue after
 * the component unmounts.
 */
export function useSave<Table extends WritableTable>(table: Table): SaveResult<Table> {
  const { state, cancel, send } = useSending<RecordFrom<Table>>();
  // Each table takes these arguments, as its own types say.
  const calls = table as unknown as Record<"insert" | "update", (...given: unknown[]) => Promise<RecordFrom<Table>>>;
  const insert: SaveResult<Table>["insert"] = useCallback(
    (record) => send((own) => calls.insert(record, own)),
    [calls, send],
  );
  const update: SaveResult<Table>["update"] = useCallback(
    (id, changes) => send((own) => calls.update(id, changes, own)),
    [calls, send],
  );
  const { result: record, ...shown } = state;
  return { ...shown, record, insert, update, cancel };
}
