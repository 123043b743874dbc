import { Button, Table } from "@mantine/core";
import { type QueryKey, useInfiniteQuery } from "@tanstack/react-query";
import { type MouseEvent, type ReactNode, useCallback, useState } from "react";
import { Failure, Loading } from "../states.tsx";

const CONTROLS = "a, button, input, label, select, textarea";
const OPENER = "a[href], button[aria-expanded]";

/** Forwards a click in a row to its link or button, which the keyboard uses. */
function openRow({ currentTarget, target }: MouseEvent<HTMLTableRowElement>): void {
  if (!(target instanceof Element) || target.closest(CONTROLS) !== null) return;
  // Selecting text to copy it opens nothing.
  if (getSelection()?.isCollapsed === false) return;
  currentTarget.querySelector<HTMLElement>(OPENER)?.click();
}

/** Props of a table row that opens on click. */
export const OPENING_ROW = { onClick: openRow, className: "opening-row" } as const;

/** Page of a list, as the client returns it. `cursor` is null on the last one. */
interface ListPage<Item> {
  items: readonly Item[];
  cursor: string | null;
}

/** List that is loaded page by page. */
export interface PagedList<Item> {
  /** Loaded items; null before the first page. */
  items: readonly Item[] | null;
  error: unknown;
  retry(): void;
  /** Loads the next page; null on the last one. */
  more: (() => void) | null;
  isLoadingMore: boolean;
}

/**
 * Returns a list loaded page by page. `load` receives the cursor of the previous page, null for the first one. With
 * `refetchInterval`, in milliseconds, the list is polled.
 */
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

/** Entries of a list, or why there are none, and a button for more. Loaded entries stay when a later request fails. */
export function Paged<Item>({
  list: { items, error, retry, more, isLoadingMore },
  empty,
  rows,
  isEndless = false,
  children,
}: {
  list: PagedList<Item>;
  /** Whether `children` load the next page automatically. */
  isEndless?: boolean;
  /** Shown in place of an empty list. */
  empty: ReactNode;
  /** Number of placeholder lines while loading. */
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

/**
 * Returns the selection of a list, cleared when the list shows something else, so that no action affects invisible items. `shown`
 * identifies what the list shows.
 */
export function useSelection(shown: string): [Selection, (chosen: Selection) => void] {
  const [selection, setSelection] = useState({ shown, chosen: NOTHING });
  const choose = useCallback((chosen: Selection) => setSelection({ shown, chosen }), [shown]);
  return [selection.shown === shown ? selection.chosen : NOTHING, choose];
}

/** Table that scrolls sideways, also by keyboard, if the screen is narrower than `minWidth` pixels. */
export function Wide({ minWidth, children }: { minWidth: number; children: ReactNode }) {
  return (
    <Table.ScrollContainer className="wide" minWidth={minWidth} scrollAreaProps={{ viewportProps: { tabIndex: 0 } }}>
      {children}
    </Table.ScrollContainer>
  );
}

/** Detail below a line of such a table: no wider than the screen, and fixed while the table scrolls. */
export const WideDetail = ({ children }: { children: ReactNode }) => <div className="wide-detail">{children}</div>;
