import { QueryObserver } from "@tanstack/react-query";
import { useEffect, useLayoutEffect, useRef } from "react";
import { queries } from "./server.ts";

/** Pages at rest observe nothing. What they show is held meanwhile: without it their forms would begin anew. */
export function useHeld(isHeld: boolean): void {
  const releases = useRef<readonly (() => void)[]>([]);
  // Before the pages end their observation, and, below, until they have begun again.
  useLayoutEffect(() => {
    if (!isHeld) return;
    const shown = queries.getQueryCache().findAll({ type: "active" });
    releases.current = shown.map(({ options, queryKey }) =>
      new QueryObserver(queries, { ...options, queryKey, enabled: false }).subscribe(() => {}),
    );
  }, [isHeld]);
  useEffect(() => {
    if (!isHeld) return;
    return () => {
      for (const release of releases.current) release();
    };
  }, [isHeld]);
}
