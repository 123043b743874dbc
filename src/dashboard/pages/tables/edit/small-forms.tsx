import { Button, Checkbox, Group, MultiSelect, Stack, TextInput } from "@mantine/core";
import { type SyntheticEvent, useState } from "react";
import type { TableSchema } from "../../../api/resources.ts";
import type { TableAddress } from "../address.ts";
import type { Edit } from "./source.ts";

/** The form of something new that has a name only, and of a namespace, which may have instances. */
export function NameForm({
  label,
  hint,
  hasInstances = false,
  onSubmit,
}: {
  label: string;
  hint: string;
  hasInstances?: boolean;
  onSubmit(name: string, isInstance: boolean): void;
}) {
  const [name, setName] = useState("");
  const [isInstance, setIsInstance] = useState(false);
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    onSubmit(name, isInstance);
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        <TextInput
          label={label}
          description={hint}
          required
          data-autofocus
          value={name}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
        />
        {hasInstances ? (
          <Checkbox
            label="One file per instance"
            description="For tenants: each has its own records, in a file that can be moved and deleted"
            checked={isInstance}
            onChange={({ currentTarget }) => setIsInstance(currentTarget.checked)}
          />
        ) : null}
        <Group>
          <Button type="submit">Review</Button>
        </Group>
      </Stack>
    </form>
  );
}

/** The form of an index, or of the fields that are searched. */
export function FieldsForm({
  address: { namespace, table },
  schema,
  kind,
  onSubmit,
}: {
  address: TableAddress;
  schema: TableSchema;
  kind: "addIndex" | "setFts";
  onSubmit(edit: Edit): void;
}) {
  const [fields, setFields] = useState<string[]>(kind === "setFts" ? [...(schema.fts?.fields ?? [])] : []);
  const [unique, setUnique] = useState(false);
  const isIndex = kind === "addIndex";
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    onSubmit({ do: kind, namespace, table, fields, ...(isIndex && unique ? { unique } : {}) });
  };
  const names = Object.entries(schema.fields).flatMap(([name, { type }]) =>
    isIndex || type === "string" || type === "text" ? [name] : [],
  );
  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        <MultiSelect
          label="Fields"
          description={isIndex ? "In the order of the index" : "No fields end the search"}
          required={isIndex}
          searchable
          data={names}
          value={fields}
          onChange={setFields}
        />
        {isIndex ? (
          <Checkbox
            label="Unique"
            description="No two records have the same values"
            checked={unique}
            onChange={({ currentTarget }) => setUnique(currentTarget.checked)}
          />
        ) : null}
        <Group>
          <Button type="submit">Review</Button>
        </Group>
      </Stack>
    </form>
  );
}
