import type { ClientContext } from "../context.ts";
import { listen } from "../listeners.ts";
import { jittered, pause } from "../runtime.ts";
import { isPassing, PlatformError, statusError } from "../transport/errors.ts";
import type { RequestOptions } from "../transport/types.ts";
import type { UploadOptions } from "./types.ts";

/** What is uploaded where. */
export interface UploadTask {
  /** The path of the bucket. */
  bucket: string;
  key: string;
  file: Blob;
  contentType: string;
  metadata: UploadOptions["metadata"];
  /** Bytes of the file that have been sent. */
  onLoaded(bytes: number): void;
  signal: AbortSignal;
}

/** A request of which nothing moves for this long is taken for lost, and while the server works after the last byte. */
const STALL_MS = 30_000;
/** The same where the environment does not tell how far a request is: it has this long, and this much for each byte. */
const SLOWEST_BYTES_PER_MS = 16;

type Fetch = NonNullable<RequestOptions["fetch"]>;

/** How a body is sent: with `fetch`, which does not say how far it is, or with an XMLHttpRequest, which does. */
export function sendingOf(
  context: ClientContext,
  bytes: number,
  onLoaded: (bytes: number) => void,
): Pick<RequestOptions, "fetch" | "timeoutMs"> {
  // Missing in service workers, Node, Bun and Deno.
  if (typeof XMLHttpRequest === "undefined") return { timeoutMs: STALL_MS + bytes / SLOWEST_BYTES_PER_MS };
  return { fetch: sendByXhr(context, (loaded) => onLoaded(Math.min(loaded, bytes))), timeoutMs: 0 };
}

/** `fetch` with an XMLHttpRequest. Rejects when nothing of the body has moved for a while. */
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
        reject(new TypeError("The connection was lost"));
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

/** Tries of one request of an upload; the wait doubles from the first to the longest. A success of any part begins anew. */
const FAILURES_MAX = 10;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;

const isTriedAgain = (error: unknown): error is PlatformError => error instanceof PlatformError && isPassing(error);

/** Resolves when the browser says that it is online, or after `ms`. */
async function untilOnline({ runtime }: ClientContext, ms: number, signal: AbortSignal): Promise<void> {
  const back = new AbortController();
  const wake = () => back.abort();
  const ends = [listen(globalThis, "online", wake), listen(signal, "abort", wake)];
  await pause(runtime, ms, back.signal).catch(() => {});
  for (const end of ends) end();
}

/** What the requests of one upload share: a success of one means that the others may go on trying. */
interface Patience {
  /** Runs `work` until it succeeds. Errors: what does not pass; that another user has signed in; the last error after ten failures in a row; the signal's reason. */
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
        // What one user began is not stored as another one's.
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
          // Without a network nothing is tried in vain.
          if (globalThis.navigator?.onLine !== false && ++failures >= FAILURES_MAX) throw error;
          const longMs = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures);
          const waitMs = jittered(context.runtime, longMs);
          await untilOnline(context, Math.max(waitMs, (error.retryAfter ?? 0) * 1000), signal);
        }
      }
    },
  };
}
