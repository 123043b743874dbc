import { Button, Group, Text } from "@mantine/core";
import type { FolderPage } from "../../../client/storage/types.ts";
import { queries } from "../../api/server.ts";
import { Paged, type PagedList, usePaged, useSelection } from "../../parts/list/list.tsx";
import { Empty } from "../../parts/states.tsx";
import { deleteSoon, inTurn, type Sending, useHidden } from "../../parts/undo.tsx";
import { useServer, useViewAs } from "../../shell/view-as.tsx";
import { hiddenName, type Layout, nameOf } from "./address.ts";
import { FileList } from "./list.tsx";
import { Pictures } from "./pictures.tsx";

/** Number of files in one page of a folder. */
const FILES_PAGE = 100;
/** Maximum number of keys in one delete request, a limit of the server. */
const DELETED_AT_ONCE_MAX = 100;

type Entry = { folder: string } | { file: FolderPage["items"][number] };

/** Returns the files and folders below a prefix, without those about to be deleted. */
function useFolder(bucket: string, prefix: string): PagedList<Entry> {
  const server = useServer();
  const as = useViewAs();
  const hidden = useHidden();
  const list = usePaged<Entry>({
    queryKey: ["files", bucket, "folder", as, prefix],
    async load(cursor) {
      const page = await server.storage(bucket).browse({ prefix, limit: FILES_PAGE, cursor });
      const items = [...page.folders.map((folder) => ({ folder })), ...page.items.map((file) => ({ file }))];
      return { items, cursor: page.cursor };
    },
  });
  const isShown = (entry: Entry): boolean => "folder" in entry || !hidden.has(hiddenName(bucket, entry.file.key));
  return { ...list, items: list.items?.filter(isShown) ?? null };
}

/** Deletes files after ten seconds, with the rights of the viewed-as user. */
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
        inTurn(
          sending,
          Array.from({ length: Math.ceil(keys.length / DELETED_AT_ONCE_MAX) }, (_, index) => () => {
            return send(keys.slice(index * DELETED_AT_ONCE_MAX, (index + 1) * DELETED_AT_ONCE_MAX), sending);
          }),
        ),
      done: () => void queries.invalidateQueries({ queryKey: ["files", bucket] }),
    });
}

interface FolderProps {
  bucket: string;
  prefix: string;
  /** Prefix of names. */
  q: string;
  layout: Layout;
  isWritable: boolean;
  isDeletable: boolean;
}

export function Folder({ bucket, prefix, q, layout, isWritable, isDeletable }: FolderProps) {
  const list = useFolder(bucket, prefix + q);
  const [chosen, setChosen] = useSelection(JSON.stringify([useViewAs(), q]));
  const remove = useDeleteFiles(bucket);
  const Entries = layout === "list" ? FileList : Pictures;
  return (
    <>
      <Paged
        list={list}
        isEndless
        empty={list.more === null ? <EmptyFolder prefix={prefix} q={q} isWritable={isWritable} /> : null}
      >
        {(entries) => (
          <Entries
            {...{ bucket, chosen, list }}
            folders={entries.flatMap((entry) => ("folder" in entry ? entry.folder : []))}
            files={entries.flatMap((entry) => ("file" in entry ? entry.file : []))}
            onChoose={isDeletable ? setChosen : null}
          />
        )}
      </Paged>
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
