import { useCallback, useRef, useState } from "react";
import type { Bucket, FileEntry, Uploadable, UploadOptions, UploadProgress } from "../storage/types.ts";
import { PlatformError } from "../transport/errors.ts";

interface UploadState {
  status: "idle" | "uploading" | "done" | "failed";
  /** Progress of the current or last upload. */
  progress: UploadProgress;
  /** Stored file; null until the upload is complete. */
  file: FileEntry | null;
  /** Reason of the failure; null otherwise, also after a cancelled upload. */
  error: PlatformError | null;
}

export interface UploadResult extends UploadState {
  /** Uploads a file like `upload` of the bucket, including its errors. A further call cancels the previous upload. */
  upload(key: string, file: Uploadable, options?: Omit<UploadOptions, "onProgress" | "signal">): Promise<FileEntry>;
  /** Cancels the current upload. */
  cancel(): void;
}

const IDLE: UploadState = { status: "idle", progress: { loaded: 0, total: 0 }, file: null, error: null };

/** Returns an upload with its progress: `useUpload(client.storage("posters"))`. Uploads continue after the component unmounts. */
export function useUpload(bucket: Bucket): UploadResult {
  const [state, setState] = useState(IDLE);
  const current = useRef<AbortController | null>(null);
  const cancel = useCallback(() => current.current?.abort(), []);
  const upload: UploadResult["upload"] = useCallback(
    async (key, file, options) => {
      current.current?.abort();
      const own = new AbortController();
      current.current = own;
      // Updates of an earlier upload are ignored.
      const show = (next: UploadState) => {
        if (current.current === own) setState(next);
      };
      let progress = IDLE.progress;
      show({ ...IDLE, status: "uploading" });
      const onProgress = (next: UploadProgress) => {
        progress = next;
        show({ ...IDLE, status: "uploading", progress });
      };
      try {
        const entry = await bucket.upload(key, file, { ...options, onProgress, signal: own.signal });
        show({ status: "done", progress, file: entry, error: null });
        return entry;
      } catch (error) {
        const because = error instanceof PlatformError ? error : null;
        show(own.signal.aborted ? IDLE : { status: "failed", progress, file: null, error: because });
        throw error;
      }
    },
    [bucket],
  );
  return { ...state, upload, cancel };
}
