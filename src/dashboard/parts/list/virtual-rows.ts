import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { type RefObject, useEffect, useLayoutEffect, useState } from "react";
import type { PagedList } from "./list.tsx";

const OVERSCAN_ROWS = 12;
/** The next page is loaded this many rows before the last loaded one. */
const AHEAD_ROWS = 40;

/** Rendered part of a virtualized list with rows of one height. */
interface VirtualRows {
  /** Index of the first rendered row; `to` is the one after the last. */
  from: number;
  to: number;
  /** Height of the rows before and after, in pixels. */
  beforePx: number;
  afterPx: number;
}

/** Virtualizes a list that the window scrolls; `place` is where it begins. The next page is loaded before it is reached. */
export function useVirtualRows(
  place: RefObject<HTMLElement | null>,
  { count, rowPx, list }: { count: number; rowPx: number; list: PagedList<unknown> },
): VirtualRows {
  const [top, setTop] = useState(0);
  // The height of the content above the list changes.
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
  // The virtualizer caches sizes until it is told to measure.
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
