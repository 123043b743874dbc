import { treaty } from "@elysiajs/eden/treaty2";
import type { ClientContext } from "../context.ts";
import { PlatformError } from "../transport/errors.ts";
import type { Method } from "../transport/types.ts";

type Step = ((...given: readonly unknown[]) => Promise<unknown>) & { readonly [name: string]: Step };

/** Calls a route by Eden: it writes the body and reads the answer. The client's transport sends it, with its tokens. */
export function call(context: ClientContext, path: readonly string[], given: readonly unknown[]): Promise<unknown> {
  // Without a type of its routes: the names of the path are data here. Texts that look like dates stay texts, as typed.
  const api = treaty("http://routes", {
    fetcher: fetcherOf(context) as typeof fetch,
    parseDate: false,
    keepDomain: true,
  });
  const root = (api as unknown as Step)["api"]?.["functions"];
  const route = path.reduce((step, name) => step?.[name], root);
  if (route === undefined) throw new TypeError("The route has no path");
  return route(...given);
}

/** `fetch` through the transport, which refreshes tokens. An answer of any status is given, as Eden reads errors itself. */
const fetcherOf =
  ({ transport }: ClientContext) =>
  async (url: string, init: RequestInit): Promise<Response> => {
    let answer: Response | null = null;
    const { method, body, headers, signal, ...others } = init;
    try {
      return await transport.request<Response>(method as Method, url.slice("http://routes".length), {
        body: body ?? undefined,
        headers: headers as Record<string, string>,
        signal: signal ?? undefined,
        raw: true,
        // A stream of the route's may take any time.
        timeoutMs: 0,
        async fetch(address, sent) {
          const response = await fetch(address, { ...others, ...sent });
          answer = response.clone();
          return response;
        },
      });
    } catch (error) {
      // What another try was answered counts only if this one was not.
      if (error instanceof PlatformError && error.status !== 0 && answer !== null) return answer;
      throw error;
    }
  };
