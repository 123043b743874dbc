import type { ClientContext } from "../context.ts";
import { listen } from "../listeners.ts";
import { jittered, pause } from "../runtime.ts";
import { isPassing, PlatformError, statusError } from "../transport/errors.ts";
import type { RequestOptions } from "../transport/types.ts";
import type { UploadOptions } from "./types.ts";

/** Upload of one file. */
export interface UploadTask {
  /** Path of the bucket. */
  bucket: string;
  key: string;
  file: Blob;
  contentType: string;
  metadata: UploadOptions["metadata"];
  /** Reports the number of bytes of the file that have been sent. */
  onLoaded(bytes: number): void;
  signal: AbortSignal;
}

/**
 * Stall timeout: a request without progress for this long counts as lost. It also limits the server's work after the last byte.
 */
const STALL_MS = 30_000;
/** Minimum rate without upload progress: a request may take the stall timeout, plus the time of its bytes at this rate. */
const SLOWEST_BYTES_PER_MS = 16;

/** Runs `work`, and reports its loaded bytes. A lost connection discards sent bytes, but the progress never decreases. */
export async function reporting<T>(
  total: number,
  onProgress: UploadOptions["onProgress"],
  work: (onLoaded: (bytes: number) => void) => Promise<T>,
): Promise<T> {
  let shown = -1;
  const onLoaded = (loaded: number) => {
    if (loaded <= shown) return;
    shown = loaded;
    onProgress?.({ loaded, total });
  };
  onLoaded(0);
  const result = await work(onLoaded);
  onLoaded(total);
  return result;
}

type Fetch = NonNullable<RequestOptions["fetch"]>;

/** Returns how to send a body: with `fetch`, which reports no upload progress, or with an XMLHttpRequest, which does. */
export function sendingOf(
  context: ClientContext,
  bytes: number,
  onLoaded: (bytes: number) => void,
): Pick<RequestOptions, "fetch" | "timeoutMs"> {
  // XMLHttpRequest is missing in service workers, Node, Bun and Deno.
  if (typeof XMLHttpRequest === "undefined") return { timeoutMs: STALL_MS + bytes / SLOWEST_BYTES_PER_MS };
  return { fetch: sendByXhr(context, (loaded) => onLoaded(Math.min(loaded, bytes))), timeoutMs: 0 };
}

/** Implements `fetch` with an XMLHttpRequest. Rejects when the body stalls. */
const sendByXhr =
  ({ runtime }: ClientContext, onLoaded: (bytes: number) => void): Fetch =>
  (url, { method = "GET", headers, body, signal }) =>
    new Promise((resolve, reject) => {
      const xhr = new XMLHttpRequest();
      let cancel: () => void = () => {};
      const end = () => xhr.abort();
      const stopListening = listen(signal, "abort", end);
      const settle = () => {
        cancel();
        stopListening();
      };
      const fail = () => {
        settle();
        reject(new TypeError());
      };
      const watch = () => {
        cancel();
        cancel = runtime.after(STALL_MS, end);
      };
      xhr.open(method, url);
      for (const [name, value] of Object.entries(headers ?? {})) xhr.setRequestHeader(name, value);
      xhr.upload.onprogress = ({ loaded }) => {
        watch();
        onLoaded(loaded);
      };
      xhr.onload = () => {
        settle();
        const lines = xhr.getAllResponseHeaders().trim().split(/\r?\n/);
        const given = lines.map((line) => line.split(/:\s*(.*)/, 2) as [string, string]);
        resolve(new Response(xhr.responseText, { status: xhr.status, headers: given }));
      };
      xhr.onerror = fail;
      xhr.onabort = fail;
      watch();
      xhr.send(body as XMLHttpRequestBodyInit);
    });

/** Attempts per request of an upload, with exponential backoff up to the longest wait. A success of any part resets the count. */
const FAILURES_MAX = 10;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;

const isTriedAgain = (error: unknown): error is PlatformError => error instanceof PlatformError && isPassing(error);

/** Resolves when the browser reports that it is online, or after `ms`. */
async function untilOnline({ runtime }: ClientContext, ms: number, signal: AbortSignal): Promise<void> {
  const back = new AbortController();
  const wake = () => back.abort();
  const ends = [listen(globalThis, "online", wake), listen(signal, "abort", wake)];
  await pause(runtime, ms, back.signal).catch(() => {});
  for (const end of ends) end();
}

/** Shared retries of one upload's requests: a success of one resets the failures of all. */
interface Patience {
  /**
   * Runs `work` until it succeeds. Errors: permanent failures; a change of the user; the last error after ten failures in a row;
   * the signal's reason.
   */
  run<T>(work: () => Promise<T>): Promise<T>;
}

export function createPatience(context: ClientContext, signal: AbortSignal): Patience {
  let successes = 0;
  const { transport } = context;
  const userId = transport.userId();
  return {
    async run(work) {
      let seen = successes;
      for (let failures = 0; ; ) {
        signal.throwIfAborted();
        // An upload that one user started is not stored as another one's.
        if (transport.userId() !== userId) throw statusError(401, "Another user");
        try {
          const result = await work();
          successes++;
          return result;
        } catch (error) {
          signal.throwIfAborted();
          if (!isTriedAgain(error)) throw error;
          if (successes > seen) failures = 0;
          seen = successes;
          // Failures without a network do not count.
          if (globalThis.navigator?.onLine !== false && ++failures >= FAILURES_MAX) throw error;
          const longMs = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures);
          const waitMs = jittered(context.runtime, longMs);
          await untilOnline(context, Math.max(waitMs, (error.retryAfter ?? 0) * 1000), signal);
        }
      }
    },
  };
}
