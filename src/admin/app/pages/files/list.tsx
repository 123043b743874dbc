import { Checkbox, Group, Table, Text } from "@mantine/core";
import { IconFolder } from "@tabler/icons-react";
import type { FolderPage } from "../../../../client/storage/types.ts";
import { bytesText } from "../../parts/format.ts";
import { Name, plainName } from "../../parts/name.tsx";
import { PageLink } from "../../parts/page-link.tsx";
import { Ago } from "../../parts/time.tsx";
import { nameOf } from "./address.ts";
import { iconOf } from "./kinds.ts";

export interface Entries {
  bucket: string;
  folders: readonly string[];
  files: FolderPage["items"];
  chosen: ReadonlySet<string>;
  /** null: nothing can be done with chosen files. */
  onChoose: ((keys: ReadonlySet<string>) => void) | null;
}

export function toggled(chosen: ReadonlySet<string>, key: string): ReadonlySet<string> {
  const next = new Set(chosen);
  if (!next.delete(key)) next.add(key);
  return next;
}

const FOLDER = { color: "var(--mantine-color-yellow-7)", fill: "var(--mantine-color-yellow-4)" };

/** The folders and files of a folder, one a line. */
export function FileList({ folders, files, chosen, onChoose }: Entries) {
  const isAllChosen = files.length > 0 && files.every(({ key }) => chosen.has(key));
  return (
    <Table highlightOnHover layout="fixed" aria-label="Files">
      <Table.Thead>
        <Table.Tr>
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
      <Table.Tbody>
        {folders.map((folder) => (
          <Table.Tr key={folder}>
            {onChoose === null ? null : <Table.Td />}
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
        ))}
        {files.map(({ key, size, contentType, uploaded }) => {
          const Icon = iconOf(contentType);
          return (
            <Table.Tr key={key} bg={chosen.has(key) ? "var(--chosen)" : ""}>
              {onChoose === null ? null : (
                <Table.Td>
                  <Checkbox
                    aria-label={`Choose ${plainName(nameOf(key))}`}
                    checked={chosen.has(key)}
                    onChange={() => onChoose(toggled(chosen, key))}
                  />
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
        })}
      </Table.Tbody>
    </Table>
  );
}
