import { listen } from "../listeners.ts";
import type { Runtime } from "../runtime.ts";
import { errorOf, localError, networkError } from "./errors.ts";
import type { RequestOptions } from "./types.ts";

/** One request, ready to be sent any number of times. */
export interface Prepared {
  url: string;
  init: RequestInit;
  signal: AbortSignal | undefined;
  /** 0: any time. */
  timeoutMs: number;
  isRaw: boolean;
  fetch: NonNullable<RequestOptions["fetch"]>;
}

/**
 * Sends a request once. Gives the JSON of its answer, undefined for an empty one, or the `Response` itself if `isRaw`. Errors:
 * `PlatformError`; the reason of `signal` when that has ended it.
 */
export async function attempt(request: Prepared, runtime: Runtime): Promise<unknown> {
  const { url, init, signal, timeoutMs, isRaw } = request;
  signal?.throwIfAborted();
  const controller = new AbortController();
  // `AbortSignal.any` is younger than the browsers that the client supports.
  const stopListening = listen(signal, "abort", () => controller.abort(signal?.reason));
  let isLate = false;
  const cancel =
    timeoutMs === 0
      ? () => {}
      : runtime.after(timeoutMs, () => {
          isLate = true;
          controller.abort();
        });
  try {
    const response = await request.fetch(url, { ...init, signal: controller.signal });
    if (response.status >= 400) throw response;
    if (isRaw) return response;
    const text = await response.text();
    return text === "" ? undefined : JSON.parse(text);
  } catch (cause) {
    if (cause instanceof Response) throw await errorOf(cause);
    if (isLate) throw localError("timeout", `${url} did not answer within ${timeoutMs} ms`);
    signal?.throwIfAborted();
    throw networkError(url, cause);
  } finally {
    // The caller of a raw answer still reads its body, which `signal` goes on ending.
    cancel();
    if (!isRaw) stopListening();
  }
}
