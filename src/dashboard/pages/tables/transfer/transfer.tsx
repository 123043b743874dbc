import { ActionIcon, Menu, Modal, Progress, Stack, Text, Tooltip } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { lazy, Suspense, useRef, useState } from "react";
import type { TableSchema } from "../../../api/resources.ts";
import { messageOf } from "../../../api/server.ts";
import { download } from "../../../parts/download.ts";
import { numberText } from "../../../parts/format.tsx";
import { IconDotsVertical, IconDownload, IconUpload } from "../../../parts/icons.tsx";
import { Loading } from "../../../parts/states.tsx";
import { useServer } from "../../../shell/view-as.tsx";
import type { TableAddress } from "../address.ts";
import type { Listing } from "../rows.ts";
import type { ExportFormat } from "./export.ts";

interface TransferProps {
  address: TableAddress;
  schema: TableSchema;
  listing: Listing;
  mayImport: boolean;
}

// Loaded on first use: readers and writers of CSV are larger than the rest of the page.
const ImportDialog = lazy(() => import("./import.tsx"));

/** Menu for importing records from a file, and exporting the listed ones. */
export function Transfer({ address, schema, listing, mayImport }: TransferProps) {
  const [isImporting, setIsImporting] = useState(false);
  const exporting = useExport({ address, schema, listing });
  return (
    <>
      <Menu position="bottom-start" shadow="md">
        <Menu.Target>
          <Tooltip label="Import and export">
            <ActionIcon variant="default" size={36} aria-label="Import and export">
              <IconDotsVertical size={16} />
            </ActionIcon>
          </Tooltip>
        </Menu.Target>
        <Menu.Dropdown>
          {mayImport ? (
            <Menu.Item leftSection={<IconUpload size={16} aria-hidden />} onClick={() => setIsImporting(true)}>
              Import a file
            </Menu.Item>
          ) : null}
          <Menu.Item
            leftSection={<IconDownload size={16} aria-hidden />}
            // Schemaless records have different fields, and CSV has one header for all.
            disabled={schema.schemaless}
            onClick={() => exporting.start("csv")}
          >
            Export as CSV
          </Menu.Item>
          <Menu.Item leftSection={<IconDownload size={16} aria-hidden />} onClick={() => exporting.start("ndjson")}>
            Export as NDJSON
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <Modal opened={exporting.progress !== null} onClose={exporting.cancel} title={`Export ${address.table}`}>
        {exporting.progress === null ? null : <ExportProgress {...exporting.progress} />}
      </Modal>
      {isImporting ? (
        <Suspense fallback={<Loading rows={2} />}>
          <ImportDialog address={address} schema={schema} onClose={() => setIsImporting(false)} />
        </Suspense>
      ) : null}
    </>
  );
}

interface Exported {
  count: number;
  total: number | null;
}

function ExportProgress({ count, total }: Exported) {
  return (
    <Stack gap="xs">
      <Progress
        value={total === null || total === 0 ? 0 : (100 * count) / total}
        aria-label="Exported"
        animated
        transitionDuration={200}
      />
      <Text size="sm" className="number">
        {numberText(count)}
        {total === null ? "" : ` of ${numberText(total)}`} records. Closing this cancels the export.
      </Text>
    </Stack>
  );
}

function useExport(about: Pick<TransferProps, "address" | "schema" | "listing">) {
  const server = useServer();
  const [progress, setProgress] = useState<Exported | null>(null);
  const running = useRef<AbortController | null>(null);
  const start = async (format: ExportFormat): Promise<void> => {
    const controller = new AbortController();
    running.current = controller;
    setProgress({ count: 0, total: null });
    try {
      const { exportRecords } = await import("./export.ts");
      const onProgress = (count: number, total: number | null): void => setProgress({ count, total });
      const { blob, count } = await exportRecords(server, about, format, { signal: controller.signal, onProgress });
      download(blob, `${about.address.table}.${format}`);
      notifications.show({ message: `${numberText(count)} records exported` });
    } catch (error) {
      if (!controller.signal.aborted) {
        notifications.show({ color: "red", title: "Nothing was exported", message: messageOf(error) });
      }
    } finally {
      setProgress(null);
    }
  };
  return { progress, start: (format: ExportFormat) => void start(format), cancel: () => running.current?.abort() };
}
