import { Button } from "@mantine/core";
import { type QueryKey, useInfiniteQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Failure, Loading } from "../states.tsx";

/** One page of a list, as the client gives it. `cursor` is null on the last one. */
export interface ListPage<Item> {
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
