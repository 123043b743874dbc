import { useCallback, useRef, useState } from "react";
import type { Bucket, FileEntry, Uploadable, UploadOptions, UploadProgress } from "../storage/types.ts";
import { PlatformError } from "../transport/errors.ts";

interface UploadState {
  status: "idle" | "uploading" | "done" | "failed";
  /** Of the upload under way, or of the last one. */
  progress: UploadProgress;
  /** The stored file, once it is. */
  file: FileEntry | null;
  /** Why it failed; null for an upload that was cancelled, too. */
  error: PlatformError | null;
}

export interface UploadResult extends UploadState {
  /** As that of the bucket, and rejects as that does. Another call cancels the one before. */
  upload(key: string, file: Uploadable, options?: Omit<UploadOptions, "onProgress" | "signal">): Promise<FileEntry>;
  /** Ends the upload under way. */
  cancel(): void;
}

const IDLE: UploadState = { status: "idle", progress: { loaded: 0, total: 0 }, file: null, error: null };

/** An upload with its progress: `useUpload(client.storage("posters"))`. It goes on when the component is gone. */
export function useUpload(bucket: Bucket): UploadResult {
  const [state, setState] = useState(IDLE);
  const current = useRef<AbortController | null>(null);
  const cancel = useCallback(() => current.current?.abort(), []);
  const upload: UploadResult["upload"] = useCallback(
    async (key, file, options) => {
      current.current?.abort();
      const own = new AbortController();
      current.current = own;
      // What an earlier upload still has to say is not shown.
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
