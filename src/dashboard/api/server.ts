import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";
import { createAdministrator } from "../../client/admin/administrator.ts";
import { defaultStore } from "../../client/store.ts";
import { PlatformError } from "../../client/transport/errors.ts";

export { PlatformError };

/** What the server said, or why it could not be asked. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (!(error instanceof PlatformError)) return error.message;
  const fields = Object.values(error.fields).map(({ message }) => message);
  return fields.length > 0 ? fields.join("; ") : error.message;
}

/** How long what has been loaded is shown without loading it again. */
const STALE_MS = 10_000;

/** The server that serves this page. */
export const server = createAdministrator({ url: location.origin, store: defaultStore() });

const RETRIES = 2;

export const SESSION_KEY = ["session"];

/**
 * Told of every request that failed: somebody may have ended the session meanwhile. Who views as nobody is refused as well.
 * Queries and mutations tell by themselves.
 */
export function noteFailure(error: unknown): void {
  if (error instanceof PlatformError && error.status === 401) void queries.invalidateQueries({ queryKey: SESSION_KEY });
}

/** The client has tried again by itself where that makes sense. */
export const queries: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: noteFailure }),
  mutationCache: new MutationCache({ onError: noteFailure }),
  defaultOptions: {
    // [AD75] A browser that calls itself offline reaches a server on its own machine; where it reaches none, that is said.
    mutations: { networkMode: "always" },
    queries: {
      networkMode: "always",
      staleTime: STALE_MS,
      retry: (count, error) => count < RETRIES && error instanceof PlatformError && error.status === 0,
      refetchOnWindowFocus: true,
    },
  },
});
