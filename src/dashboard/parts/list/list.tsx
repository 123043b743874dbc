import { Button, Table } from "@mantine/core";
import { type QueryKey, useInfiniteQuery } from "@tanstack/react-query";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import {
  type MouseEvent,
  type ReactNode,
  type RefObject,
  useCallback,
  useEffect,
  useLayoutEffect,
  useState,
} from "react";
import { Failure, Loading } from "../states.tsx";

const CONTROLS = "a, button, input, label, select, textarea";
const OPENER = "a[href], button[aria-expanded]";

/** A click anywhere in a row is one on the link or button that opens it, by which the keyboard opens it. */
function openRow({ currentTarget, target }: MouseEvent<HTMLTableRowElement>): void {
  if (!(target instanceof Element) || target.closest(CONTROLS) !== null) return;
  // Who marks a text to copy it opens nothing.
  if (getSelection()?.isCollapsed === false) return;
  currentTarget.querySelector<HTMLElement>(OPENER)?.click();
}

/** Props of a row of a table that opens by a click. */
export const OPENING_ROW = { onClick: openRow, className: "opening-row" } as const;

/** One page of a list, as the client gives it. `cursor` is null on the last one. */
interface ListPage<Item> {
  items: readonly Item[];
  cursor: string | null;
}

/** A list that is loaded page after page. */
export interface PagedList<Item> {
  /** What has been loaded; null before the first page. */
  items: readonly Item[] | null;
  error: unknown;
  retry(): void;
  /** Null on the last page. */
  more: (() => void) | null;
  isLoadingMore: boolean;
}

/** `load` gets the cursor of the page before, null for the first one. With `refetchInterval`, in milliseconds, the list stays current. */
export function usePaged<Item>({
  queryKey,
  load,
  refetchInterval = false,
  enabled = true,
}: {
  queryKey: QueryKey;
  load(cursor: string | null): Promise<ListPage<Item>>;
  refetchInterval?: number | false;
  enabled?: boolean;
}): PagedList<Item> {
  const pages = useInfiniteQuery({
    queryKey,
    refetchInterval,
    enabled,
    initialPageParam: null as string | null,
    getNextPageParam: ({ cursor }: ListPage<Item>) => cursor,
    queryFn: ({ pageParam }) => load(pageParam),
  });
  return {
    items: pages.data?.pages.flatMap(({ items }) => items) ?? null,
    error: pages.error,
    retry: () => void pages.refetch(),
    more: pages.hasNextPage ? () => void pages.fetchNextPage() : null,
    isLoadingMore: pages.isFetchingNextPage,
  };
}

/** The entries of a list, or why there are none, and the way to more of them. What was loaded stays when a later request fails. */
export function Paged<Item>({
  list: { items, error, retry, more, isLoadingMore },
  empty,
  rows,
  isEndless = false,
  children,
}: {
  list: PagedList<Item>;
  /** `children` load what comes next by themselves. */
  isEndless?: boolean;
  /** Shown in place of a list without entries. */
  empty: ReactNode;
  /** The lines that keep its place while it is being loaded. */
  rows?: number;
  children(items: readonly Item[]): ReactNode;
}) {
  const hasFailed = error !== null;
  return (
    <>
      {hasFailed ? <Failure error={error} onRetry={retry} /> : null}
      {items === null ? (
        hasFailed ? null : (
          <Loading {...(rows === undefined ? {} : { rows })} />
        )
      ) : items.length === 0 ? (
        empty
      ) : (
        children(items)
      )}
      {more === null || isEndless ? null : (
        <Button variant="default" onClick={more} loading={isLoadingMore} w="fit-content">
          More
        </Button>
      )}
    </>
  );
}

type Selection = ReadonlySet<string>;

const NOTHING: Selection = new Set();

/** What is chosen in a list, until the list shows other things: nobody acts on what they do not see. `shown` says what it shows. */
export function useSelection(shown: string): [Selection, (chosen: Selection) => void] {
  const [selection, setSelection] = useState({ shown, chosen: NOTHING });
  const choose = useCallback((chosen: Selection) => setSelection({ shown, chosen }), [shown]);
  return [selection.shown === shown ? selection.chosen : NOTHING, choose];
}

const OVERSCAN_ROWS = 12;
/** So many rows before the last one that is loaded, the next page is. */
const AHEAD_ROWS = 40;

/** Of rows of one height, those on the screen. */
interface VirtualRows {
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

/** A table that is scrolled sideways where the screen is narrower than `minWidth` pixels, with the keyboard too. */
export function Wide({ minWidth, children }: { minWidth: number; children: ReactNode }) {
  return (
    <Table.ScrollContainer className="wide" minWidth={minWidth} scrollAreaProps={{ viewportProps: { tabIndex: 0 } }}>
      {children}
    </Table.ScrollContainer>
  );
}

/** What opens below a line of such a table: no wider than the screen, and in its place while the table is scrolled. */
export const WideDetail = ({ children }: { children: ReactNode }) => <div className="wide-detail">{children}</div>;
