import { Checkbox, Group, Table, Text } from "@mantine/core";
import { memo, useRef } from "react";
import type { FolderPage } from "../../../client/storage/types.ts";
import { Ago, bytesText } from "../../parts/format.tsx";
import { IconFolder } from "../../parts/icons.tsx";
import { OPENING_ROW, type PagedList } from "../../parts/list/list.tsx";
import { useVirtualRows } from "../../parts/list/virtual-rows.ts";
import { Name, PageLink, plainName } from "../../parts/name.tsx";
import { nameOf } from "./address.ts";
import { iconOf } from "./kinds.ts";

export interface Entries {
  bucket: string;
  list: PagedList<unknown>;
  folders: readonly string[];
  files: FolderPage["items"];
  chosen: ReadonlySet<string>;
  /** Called with the selected files; null: there are no actions for them. */
  onChoose: ((keys: ReadonlySet<string>) => void) | null;
}

export function toggled(chosen: ReadonlySet<string>, key: string): ReadonlySet<string> {
  const next = new Set(chosen);
  if (!next.delete(key)) next.add(key);
  return next;
}

const FOLDER = { color: "var(--mantine-color-yellow-7)", fill: "var(--mantine-color-yellow-4)" };

/** Height of a line, as in the stylesheet. */
const ROW_PX = 37;

/** Virtualized list of a folder's folders and files. */
export function FileList({ list, folders, files, chosen, onChoose }: Entries) {
  const place = useRef<HTMLTableSectionElement>(null);
  const count = folders.length + files.length;
  const { from, to, beforePx, afterPx } = useVirtualRows(place, { count, rowPx: ROW_PX, list });
  const isAllChosen = files.length > 0 && files.every(({ key }) => chosen.has(key));
  return (
    <Table
      highlightOnHover
      layout="fixed"
      aria-label="Files"
      // Counts the header row; -1: unknown.
      aria-rowcount={list.more === null ? count + 1 : -1}
    >
      <Table.Thead>
        <Table.Tr aria-rowindex={1}>
          {onChoose === null ? null : (
            <Table.Th w={40}>
              <Checkbox
                aria-label="Choose all"
                checked={isAllChosen}
                indeterminate={chosen.size > 0 && !isAllChosen}
                disabled={files.length === 0}
                onChange={() => onChoose(new Set(isAllChosen ? [] : files.map(({ key }) => key)))}
              />
            </Table.Th>
          )}
          <Table.Th>Name</Table.Th>
          <Table.Th w={180} visibleFrom="md">
            Type
          </Table.Th>
          <Table.Th w={96} ta="right">
            Size
          </Table.Th>
          <Table.Th w={150} visibleFrom="sm">
            Changed
          </Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody ref={place}>
        <Space px={beforePx} />
        {folders.slice(from, to).map((folder, index) => (
          <FolderRow key={folder} folder={folder} row={from + index} isChoosing={onChoose !== null} />
        ))}
        {files.slice(Math.max(0, from - folders.length), Math.max(0, to - folders.length)).map((file, index) => (
          <FileRow
            key={file.key}
            file={file}
            row={Math.max(from, folders.length) + index}
            isChosen={chosen.has(file.key)}
            onChoose={onChoose === null ? null : () => onChoose(toggled(chosen, file.key))}
          />
        ))}
        <Space px={afterPx} />
      </Table.Tbody>
    </Table>
  );
}

/** Spacer for rows that are not rendered. */
const Space = ({ px }: { px: number }) => (px === 0 ? null : <tr aria-hidden style={{ height: px }} />);

const FolderRow = memo(function FolderRow({
  folder,
  row,
  isChoosing,
}: {
  folder: string;
  row: number;
  isChoosing: boolean;
}) {
  return (
    <Table.Tr {...OPENING_ROW} className="file-row opening-row" aria-rowindex={row + 2}>
      {isChoosing ? <Table.Td /> : null}
      <Table.Td>
        <Group gap="xs" wrap="nowrap">
          <IconFolder size={18} aria-hidden className="file-icon" {...FOLDER} />
          <PageLink change={{ prefix: folder, q: undefined }} className="name-link">
            <Name>{nameOf(folder)}</Name>
          </PageLink>
        </Group>
      </Table.Td>
      <Table.Td visibleFrom="md" c="dimmed">
        folder
      </Table.Td>
      <Table.Td />
      <Table.Td visibleFrom="sm" />
    </Table.Tr>
  );
});

function FileRow({
  file: { key, size, contentType, uploaded },
  row,
  isChosen,
  onChoose,
}: {
  file: FolderPage["items"][number];
  row: number;
  isChosen: boolean;
  onChoose: (() => void) | null;
}) {
  const Icon = iconOf(contentType);
  return (
    <Table.Tr
      {...OPENING_ROW}
      className="file-row opening-row"
      aria-rowindex={row + 2}
      bg={isChosen ? "var(--chosen)" : ""}
    >
      {onChoose === null ? null : (
        <Table.Td>
          <Checkbox aria-label={`Choose ${plainName(nameOf(key))}`} checked={isChosen} onChange={onChoose} />
        </Table.Td>
      )}
      <Table.Td>
        <Group gap="xs" wrap="nowrap">
          <Icon size={18} stroke={1.6} aria-hidden className="file-icon" />
          <PageLink change={{ file: key }} className="name-link">
            <Name>{nameOf(key)}</Name>
          </PageLink>
        </Group>
      </Table.Td>
      <Table.Td visibleFrom="md">
        <Text size="sm" c="dimmed" truncate title={contentType}>
          {contentType.split(";")[0]}
        </Text>
      </Table.Td>
      <Table.Td ta="right" className="number">
        {bytesText(size)}
      </Table.Td>
      <Table.Td visibleFrom="sm">
        <Ago time={uploaded} />
      </Table.Td>
    </Table.Tr>
  );
}
