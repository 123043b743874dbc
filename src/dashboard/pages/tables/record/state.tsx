import { Button, Group } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useServer } from "../../../shell/view-as.tsx";
import { pathOf, type TableAddress } from "../address.ts";
import { type Row, reloadRows, showRecord } from "../rows.ts";

/** In the address of the page. */
export interface RecordState {
  /** The id of a record; NEW_RECORD: one that does not exist yet. */
  record?: string;
  /** The record that a new one is a copy of. */
  from?: string;
  panel?: "json" | "rules";
  /** Whose rights the rules are tried with; by default whose view it is. */
  tryAs?: string;
}

/** No id is empty. */
export const NEW_RECORD = "";

/** Inserts a record, or changes the stored one, and shows the result in the grid. */
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
  /** Absent where the key may insert nothing. */
  onDuplicate?: ((id: string) => void) | undefined;
  /** Absent where the key may delete nothing. */
  onDelete?: ((id: string) => void) | undefined;
  onClose(): void;
}

/** The buttons below a form. */
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
