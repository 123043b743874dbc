import type { ClientContext } from "../context.ts";
import { listen } from "../listeners.ts";
import type { RequestOptions } from "../transport/types.ts";
import { SLOWEST_BYTES_PER_MS, STALL_MS } from "./limits.ts";

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
