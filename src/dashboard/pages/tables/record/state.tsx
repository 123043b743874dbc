import { Button, Group } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useRef, useState } from "react";
import type { UploadProgress } from "../../../../client/index.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import { useServer } from "../../../shell/view-as.tsx";
import { pathOf, type TableAddress } from "../address.ts";
import { type Row, reloadRows, showRecord } from "../rows.ts";

/** State of the open record, kept in the address. */
export interface RecordState {
  /** Id of the record; NEW_RECORD: one that does not exist yet. */
  record?: string;
  /** Id of the record that a new one copies. */
  from?: string;
  panel?: "json" | "referrers" | "rules";
  /** User whose rights the rules are evaluated with; by default the viewed-as user. */
  tryAs?: string;
}

/** Placeholder id of a new record: ids are never empty. */
export const NEW_RECORD = "";

const hasFiles = (body: Record<string, unknown>): boolean =>
  Object.values(body).some((value) => [value].flat().some((one) => one instanceof File));

/**
 * Inserts or updates a record, and shows the result in the grid. `progress` is that of its files; null: none are sent. `abort` ends
 * the sending of files.
 */
export function useSave(address: TableAddress, stored: Row | null) {
  const server = useServer();
  const [progress, setProgress] = useState<UploadProgress | null>(null);
  const sending = useRef(new AbortController());
  const sendFiles = async (body: JsonObject): Promise<unknown> => {
    sending.current = new AbortController();
    const options = { onProgress: setProgress, signal: sending.current.signal };
    const table = server.db(address.namespace, address.instance ?? undefined).table(address.table);
    try {
      return await (stored === null ? table.insert(body, options) : table.update(stored.id, body, options));
    } finally {
      setProgress(null);
    }
  };
  const save = useMutation({
    async mutationFn(body: Record<string, unknown>): Promise<Row> {
      // The untyped client takes files beside JSON, and answers with a record.
      if (hasFiles(body)) return (await sendFiles(body as JsonObject)) as Row;
      return stored === null
        ? server.request<Row>("POST", pathOf(address), { body, idempotent: true })
        : server.request<Row>("PATCH", `${pathOf(address)}/${encodeURIComponent(stored.id)}`, { body });
    },
    onSuccess(record) {
      showRecord(address, record);
      reloadRows(address);
    },
  });
  return { ...save, progress, abort: () => sending.current.abort() };
}

export interface RecordActions {
  /** Absent if the key may not insert. */
  onDuplicate?: ((id: string) => void) | undefined;
  /** Absent if the key may not delete. */
  onDelete?: ((id: string) => void) | undefined;
  onClose(): void;
}

/** Buttons below a form. */
export function FormButtons({
  stored,
  isReadOnly,
  isSaving,
  onDuplicate,
  onDelete,
  onClose,
}: RecordActions & { stored: Row | null; isReadOnly: boolean; isSaving: boolean }) {
  return (
    <Group justify="space-between" className="form-buttons">
      {isReadOnly ? null : (
        <Group gap="xs">
          <Button type="submit" loading={isSaving}>
            {stored === null ? "Insert" : "Save"}
          </Button>
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
        </Group>
      )}
      {stored === null ? null : (
        <Group gap="xs">
          {onDuplicate === undefined ? null : (
            <Button variant="default" onClick={() => onDuplicate(stored.id)}>
              Duplicate
            </Button>
          )}
          {onDelete === undefined ? null : (
            <Button
              color="red"
              variant="light"
              onClick={() => {
                onDelete(stored.id);
                onClose();
              }}
            >
              Delete
            </Button>
          )}
        </Group>
      )}
    </Group>
  );
}
