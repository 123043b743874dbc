import { Alert, Button, Group, Stack } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type SyntheticEvent, useState } from "react";
import { messageOf, PlatformError } from "../../../api/failure.ts";
import type { Field, TableSchema } from "../../../api/resources.ts";
import { useServer } from "../../../shell/view-as.tsx";
import { pathOf, type TableAddress } from "../address.ts";
import { editText, parsed } from "../grid/cell-text.ts";
import { type Row, reloadRows, showRecord } from "../rows.ts";
import { FieldInput } from "./input.tsx";

interface FormProps {
  address: TableAddress;
  schema: TableSchema;
  /** null: a new one. */
  stored: Row | null;
  /** The record that a new one begins as. */
  copied?: Row;
  isReadOnly: boolean;
  onDuplicate?: ((id: string) => void) | undefined;
  onDelete?: ((id: string) => void) | undefined;
  onClose(): void;
}

/** The server fills it in, or it says which record it is: of a copy it is another. */
const isOwn = (name: string, field: Field): boolean => field.generated || name === "id";

/** All fields of a record, of which those that were changed are sent. */
export function RecordForm({ address, schema, stored, copied, isReadOnly, ...actions }: FormProps) {
  const { onDuplicate, onDelete, onClose } = actions;
  const server = useServer();
  const fields = Object.entries(schema.fields).filter(
    ([name, field]) => stored !== null || name === "id" || !isOwn(name, field),
  );
  const [texts, setTexts] = useState<Record<string, string>>(() =>
    Object.fromEntries(
      fields.map(([name, field]) => {
        const value = stored?.[name] ?? (isOwn(name, field) ? undefined : copied?.[name]);
        return [name, editText(value, field)];
      }),
    ),
  );
  const save = useMutation({
    mutationFn: (body: Record<string, unknown>) =>
      stored === null
        ? server.request<Row>("POST", pathOf(address), { body, idempotent: true })
        : server.request<Row>("PATCH", `${pathOf(address)}/${encodeURIComponent(stored.id)}`, { body }),
    onSuccess(record) {
      showRecord(address, record);
      reloadRows(address);
      onClose();
    },
  });
  const problems = save.error instanceof PlatformError ? save.error.fields : {};
  const [unread, setUnread] = useState<Record<string, string>>({});
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    const body: Record<string, unknown> = {};
    const wrong: Record<string, string> = {};
    for (const [name, field] of fields) {
      const text = texts[name] ?? "";
      if (text === editText(stored?.[name], field)) continue;
      try {
        body[name] = parsed(text, field);
      } catch {
        wrong[name] = "This is no JSON";
      }
    }
    setUnread(wrong);
    if (Object.keys(wrong).length === 0) save.mutate(body);
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        {fields.map(([name, field]) => (
          <FieldInput
            key={name}
            name={name}
            field={field}
            address={address}
            text={texts[name] ?? ""}
            stored={editText(stored?.[name], field)}
            problem={unread[name] ?? problems[name]?.message ?? null}
            // An id may be chosen for a new record.
            isReadOnly={isReadOnly || (isOwn(name, field) && !(stored === null && name === "id"))}
            onChange={(text) => setTexts((before) => ({ ...before, [name]: text }))}
          />
        ))}
        {save.error === null || Object.keys(problems).some((name) => name in schema.fields) ? null : (
          <Alert color="red" role="alert">
            {messageOf(save.error)}
          </Alert>
        )}
        <Group justify="space-between" mt="sm">
          {isReadOnly ? null : (
            <Group gap="xs">
              <Button type="submit" loading={save.isPending}>
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
      </Stack>
    </form>
  );
}
