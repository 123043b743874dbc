import { Button, Group } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useServer } from "../../../shell/view-as.tsx";
import { pathOf, type TableAddress } from "../address.ts";
import { type Row, reloadRows, showRecord } from "../rows.ts";

/** State of the open record, kept in the address. */
export interface RecordState {
  /** Id of the record; NEW_RECORD: one that does not exist yet. */
  record?: string;
  /** Id of the record that a new one copies. */
  from?: string;
  panel?: "json" | "rules";
  /** User whose rights the rules are evaluated with; by default the viewed-as user. */
  tryAs?: string;
}

/** Placeholder id of a new record: ids are never empty. */
export const NEW_RECORD = "";

/** Inserts or updates a record, and shows the result in the grid. */
export function useSave(address: TableAddress, stored: Row | null) {
  const server = useServer();
  return useMutation({
    mutationFn: (body: Record<string, unknown>) =>
      stored === null
        ? server.request<Row>("POST", pathOf(address), { body, idempotent: true })
        : server.request<Row>("PATCH", `${pathOf(address)}/${encodeURIComponent(stored.id)}`, { body }),
    onSuccess(record) {
      showRecord(address, record);
      reloadRows(address);
    },
  });
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
