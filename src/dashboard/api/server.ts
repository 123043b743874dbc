import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";
import { createAdministrator } from "../../client/admin/administrator.ts";
import { defaultStore } from "../../client/store.ts";
import { PlatformError } from "../../client/transport/errors.ts";

export { PlatformError };

/** Returns the server's message, or why it could not be reached. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (!(error instanceof PlatformError)) return error.message;
  const fields = Object.values(error.fields).map(({ message }) => message);
  return fields.length > 0 ? fields.join("; ") : error.message;
}

/** Time during which loaded data counts as fresh. */
const STALE_MS = 10_000;

/** Client of the server that serves this page. */
export const server = createAdministrator({ url: location.origin, store: defaultStore() });

const RETRIES = 2;

export const SESSION_KEY = ["session"];

/**
 * Rereads the session after a request failed with 401: it may have ended. View as nobody is refused with 401 too. Queries and
 * mutations call this automatically.
 */
export function noteFailure(error: unknown): void {
  if (error instanceof PlatformError && error.status === 401) void queries.invalidateQueries({ queryKey: SESSION_KEY });
}

/** Query cache. The client already retries requests where that is useful. */
export const queries: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: noteFailure }),
  mutationCache: new MutationCache({ onError: noteFailure }),
  defaultOptions: {
    // [AD75] A browser that reports itself offline can still reach a server on its own machine. If it cannot, the failure is
    // shown.
    mutations: { networkMode: "always" },
    queries: {
      networkMode: "always",
      staleTime: STALE_MS,
      retry: (count, error) => count < RETRIES && error instanceof PlatformError && error.status === 0,
      refetchOnWindowFocus: true,
    },
  },
});
