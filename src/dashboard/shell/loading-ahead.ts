import { useEffect } from "react";
import { queries } from "../api/server.ts";
import { AHEAD_IDLE_MAX_MS } from "../limits.ts";
import { loadersBelow } from "../pages.ts";
import { useSections } from "./sections.ts";

/** Whether the browser is asked to save data; unknown in some. */
const isSavingData = (): boolean =>
  "connection" in navigator && (navigator.connection as { saveData?: boolean } | undefined)?.saveData === true;

/** Resolves when the browser has nothing to do, and what the page shows has been loaded. */
async function whenIdle(signal: AbortSignal): Promise<void> {
  do {
    await new Promise<void>((resolve) => {
      // Safari has no such call.
      if ("requestIdleCallback" in window) requestIdleCallback(() => resolve(), { timeout: AHEAD_IDLE_MAX_MS });
      else setTimeout(resolve, AHEAD_IDLE_MAX_MS);
    });
  } while (!signal.aborted && queries.isFetching() > 0);
}

/** Loads the code of the other pages once the first one is shown, one after another, so that a click on one shows its data at once. */
export function useLoadingAhead(): void {
  const sections = useSections()
    .map(({ path }) => path)
    .join(" ");
  useEffect(() => {
    if (isSavingData()) return;
    const ended = new AbortController();
    void (async () => {
      for (const load of sections.split(" ").flatMap(loadersBelow)) {
        await whenIdle(ended.signal);
        if (ended.signal.aborted) return;
        // What fails is loaded by the click.
        await load().catch(() => {});
      }
    })();
    return () => ended.abort();
  }, [sections]);
}
