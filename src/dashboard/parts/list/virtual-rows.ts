import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { type RefObject, useEffect, useLayoutEffect, useState } from "react";
import type { PagedList } from "./paged.tsx";

const OVERSCAN_ROWS = 12;
/** So many rows before the last one that is loaded, the next page is. */
const AHEAD_ROWS = 40;

/** Of rows of one height, those on the screen. */
export interface VirtualRows {
  /** The first row that exists, and the one after the last. */
  from: number;
  to: number;
  /** Pixels of the rows that do not exist. */
  beforePx: number;
  afterPx: number;
}

/** The rows of a list that the window scrolls; `place` is where they begin. What comes next is loaded before it is reached. */
export function useVirtualRows(
  place: RefObject<HTMLElement | null>,
  { count, rowPx, list }: { count: number; rowPx: number; list: PagedList<unknown> },
): VirtualRows {
  const [top, setTop] = useState(0);
  // What is above the list comes and goes.
  useLayoutEffect(() => {
    const box = place.current?.getBoundingClientRect();
    if (box !== undefined) setTop(Math.round(box.top + window.scrollY));
  });
  const rows = useWindowVirtualizer({
    count,
    estimateSize: () => rowPx,
    overscan: OVERSCAN_ROWS,
    scrollMargin: top,
  });
  // Its sizes are kept until they are said to have changed.
  // biome-ignore lint/correctness/useExhaustiveDependencies: of this size
  useEffect(() => rows.measure(), [rowPx]);
  const items = rows.getVirtualItems();
  const from = items[0]?.index ?? 0;
  const to = (items.at(-1)?.index ?? -1) + 1;
  const { more, isLoadingMore, error } = list;
  const isNearEnd = to >= count - AHEAD_ROWS;
  useEffect(() => {
    if (isNearEnd && more !== null && !isLoadingMore && error === null) more();
  }, [isNearEnd, more, isLoadingMore, error]);
  return { from, to, beforePx: from * rowPx, afterPx: Math.max(0, count - to) * rowPx };
}
