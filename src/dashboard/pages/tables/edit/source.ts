import { useQuery } from "@tanstack/react-query";
import { PlatformError, queries, server } from "../../../api/server.ts";
import { useRights } from "../../../api/session.tsx";

/** A change of the config, as `POST /api/admin/config/edits` takes it. */
export type Edit = { do: string; [member: string]: unknown };

/** The text of the config, and whether edits may be written. */
export interface Source {
  /** Null in a product, whose config is in the executable. */
  file: string | null;
  writable: boolean;
  revision: string | null;
  /** The revision with which the server has started. */
  running: string | null;
  undoable: number;
  putBack: { at: string; reason: string } | null;
}

/** The outcome of edits that are not written yet. */
export interface Preview {
  diff: string;
  migration: string | null;
  data: { files: number; unfit: number; notes: string[] } | null;
  problems: { path: string; message: string }[];
  warnings: string[];
}

const KEY = ["config-source"];
const loadSource = (): Promise<Source> => server.request<Source>("GET", "/api/admin/config/source");

/** Returns the config's text for the root key; null for other keys and in products, which cannot edit it. */
export function useSource(): Source | null {
  const { isRoot } = useRights();
  const source = useQuery({ queryKey: KEY, queryFn: loadSource, enabled: isRoot });
  return source.data?.file == null ? null : source.data;
}

/** Tries edits. Errors: an edit that is wrong, in the server's words. */
export const preview = (edits: readonly Edit[]): Promise<Preview> =>
  server.request<Preview>("POST", "/api/admin/config/edits", { body: { edits } });

/** Writes edits, and resolves when the server has started with them. Errors: it has not, with the reason. */
export const write = (edits: readonly Edit[], revision: string): Promise<void> =>
  restarting(() => server.request("POST", "/api/admin/config/edits", { body: { edits, revision, write: true } }));

/** Undoes the last write, and resolves when the server has started again. Errors: it cannot be undone, and why. */
export const undo = (): Promise<void> => restarting(() => server.request("POST", "/api/admin/config/undo"));

const START_MAX_MS = 30_000;
const EVERY_MS = 300;

/** Sends a request that changes the config, and waits for the next start. */
async function restarting(send: () => Promise<unknown>): Promise<void> {
  const { putBack: before, revision } = await loadSource();
  await send();
  const until = Date.now() + START_MAX_MS;
  while (Date.now() < until) {
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    const now = await loadSource().catch(unreachable);
    if (now === null) continue;
    if (now.putBack !== null && now.putBack.at !== before?.at)
      throw new Error(`The server did not start: ${now.putBack.reason}`);
    if (now.running !== now.revision || now.revision === revision) continue;
    await queries.invalidateQueries();
    return;
  }
  throw new Error("The server has not started again yet: see the output of platform dev");
}

/** Counts a server that does not answer as one that is about to. */
function unreachable(error: unknown): null {
  if (error instanceof PlatformError && (error.status === 0 || error.status === 503)) return null;
  throw error;
}
