import { Button, Group, Text } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import type { FolderPage } from "../../../../client/storage/types.ts";
import { queries } from "../../api/server.ts";
import { DELETED_AT_ONCE_MAX, FILES_PAGE } from "../../limits.ts";
import { Empty, Failure, Loading } from "../../parts/states.tsx";
import { deleteSoon, type Sending, useHidden } from "../../parts/undo.tsx";
import { useServer, useViewAs } from "../../shell/view-as.tsx";
import { hiddenName, type Layout, nameOf } from "./address.ts";
import { FileList } from "./list.tsx";
import { Pictures } from "./pictures.tsx";

/** The files and folders of a folder, page by page, without those that are about to be deleted. */
function useFolder(bucket: string, prefix: string) {
  const server = useServer();
  const as = useViewAs();
  const hidden = useHidden();
  const pages = useInfiniteQuery({
    queryKey: ["files", bucket, "folder", as, prefix],
    initialPageParam: null as string | null,
    getNextPageParam: ({ cursor }: FolderPage) => cursor,
    queryFn: ({ pageParam, signal }) =>
      server.storage(bucket).browse({ prefix, limit: FILES_PAGE, cursor: pageParam, signal }),
  });
  const { folders, files } = useMemo(() => {
    const loaded = pages.data?.pages ?? [];
    return {
      folders: loaded.flatMap((page) => page.folders),
      files: loaded.flatMap(({ items }) => items).filter(({ key }) => !hidden.has(hiddenName(bucket, key))),
    };
  }, [pages.data, hidden, bucket]);
  return { pages, folders, files };
}

/** Deletes files ten seconds later, as whoever the page shows. */
export function useDeleteFiles(bucket: string): (keys: readonly string[]) => void {
  const server = useServer();
  const path = `/api/storage/${encodeURIComponent(bucket)}/delete-batch`;
  const send = async (keys: readonly string[], sending: Sending): Promise<void> => {
    const { failed } = await server.request<{ failed: { error: string }[] }>("POST", path, {
      ...sending,
      body: { keys },
    });
    const [first] = failed;
    if (first !== undefined)
      throw new Error(failed.length === 1 ? first.error : `${failed.length} files: ${first.error}`);
  };
  return (keys) =>
    deleteSoon({
      names: keys.map((key) => hiddenName(bucket, key)),
      message: keys.length === 1 ? "One file deleted" : `${keys.length} files deleted`,
      run: (sending) =>
        Promise.all(
          Array.from({ length: Math.ceil(keys.length / DELETED_AT_ONCE_MAX) }, (_, index) =>
            send(keys.slice(index * DELETED_AT_ONCE_MAX, (index + 1) * DELETED_AT_ONCE_MAX), sending),
          ),
        ),
      done: () => void queries.invalidateQueries({ queryKey: ["files", bucket] }),
    });
}

interface FolderProps {
  bucket: string;
  prefix: string;
  /** The beginning of names. */
  q: string;
  layout: Layout;
  isWritable: boolean;
  isDeletable: boolean;
}

export function Folder({ bucket, prefix, q, layout, isWritable, isDeletable }: FolderProps) {
  const { pages, folders, files } = useFolder(bucket, prefix + q);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const remove = useDeleteFiles(bucket);
  if (pages.error !== null) return <Failure error={pages.error} onRetry={() => void pages.refetch()} />;
  if (pages.isPending) return <Loading />;
  const Entries = layout === "list" ? FileList : Pictures;
  const isEmpty = folders.length + files.length === 0;
  return (
    <>
      {isEmpty && !pages.hasNextPage ? (
        <EmptyFolder prefix={prefix} q={q} isWritable={isWritable} />
      ) : (
        <Entries
          {...{ bucket, folders, files, chosen }}
          onChoose={isDeletable ? (keys) => setChosen(new Set(keys)) : null}
        />
      )}
      {pages.hasNextPage ? (
        <Button variant="default" onClick={() => void pages.fetchNextPage()} loading={pages.isFetchingNextPage}>
          More
        </Button>
      ) : null}
      {chosen.size === 0 ? null : (
        <Group className="files-chosen" role="region" aria-label="Chosen files" gap="sm">
          <Text size="sm">{chosen.size === 1 ? "One file chosen" : `${chosen.size} files chosen`}</Text>
          <Button
            color="red"
            size="xs"
            onClick={() => {
              remove([...chosen]);
              setChosen(new Set());
            }}
          >
            Delete
          </Button>
          <Button size="xs" variant="default" onClick={() => setChosen(new Set())}>
            Cancel
          </Button>
        </Group>
      )}
    </>
  );
}

function EmptyFolder({ prefix, q, isWritable }: Pick<FolderProps, "prefix" | "q" | "isWritable">) {
  if (q !== "") return <Empty title="No name begins so">Search looks at the beginning of names in this folder.</Empty>;
  const title = prefix === "" ? "No files yet" : `No files in ${nameOf(prefix)}`;
  if (!isWritable) return <Empty title={title}>Your application uploads files, with the client or over HTTP.</Empty>;
  return (
    <Empty title={title}>
      Drop files here, or press Upload.{prefix === "" ? "" : " The folder is there as long as it has a file."}
    </Empty>
  );
}
