import { Button, Group } from "@mantine/core";
import type { Row } from "../rows.ts";

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
