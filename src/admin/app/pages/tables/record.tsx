import {
  Alert,
  Button,
  Code,
  Drawer,
  Group,
  JsonInput,
  Select,
  Stack,
  Tabs,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type SyntheticEvent, useState } from "react";
import { messageOf, PlatformError } from "../../api/failure.ts";
import type { Field, TableSchema } from "../../api/resources.ts";
import { Loadable } from "../../parts/states.tsx";
import { useServer, useViewAs } from "../../shell/view-as.tsx";
import { keyOf, pageOf, pathOf, type TableAddress } from "./address.ts";
import { editText, parsed } from "./grid/cell-text.ts";
import { type Row, reloadRows, showRecord } from "./rows.ts";

interface RecordProps {
  address: TableAddress;
  schema: TableSchema;
  /** The id of a record; `new`: one that does not exist yet. */
  id: string;
  isReadOnly: boolean;
  onClose(): void;
  onDelete(id: string): void;
}

export const NEW_RECORD = "new";

/** One record: all of its fields, or a new one. */
export function RecordDrawer(props: RecordProps) {
  const { address, id, onClose } = props;
  const server = useServer();
  const as = useViewAs();
  const isNew = id === NEW_RECORD;
  const record = useQuery({
    queryKey: [...keyOf(address), "record", as, id],
    enabled: !isNew,
    queryFn: () => server.request<Row>("GET", `${pathOf(address)}/${encodeURIComponent(id)}`),
  });
  return (
    <Drawer opened onClose={onClose} position="right" size="lg" title={isNew ? `New record in ${address.table}` : id}>
      {isNew ? (
        <RecordForm {...props} stored={null} />
      ) : (
        <Loadable query={record}>{(stored) => <RecordTabs {...props} stored={stored} />}</Loadable>
      )}
    </Drawer>
  );
}

function RecordTabs(props: RecordProps & { stored: Row }) {
  return (
    <Tabs defaultValue="fields">
      <Tabs.List mb="md">
        <Tabs.Tab value="fields">Fields</Tabs.Tab>
        <Tabs.Tab value="json">JSON</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="fields">
        <RecordForm {...props} key={String(props.stored["updatedAt"])} />
      </Tabs.Panel>
      <Tabs.Panel value="json">
        <Code block>{JSON.stringify(props.stored, null, 2)}</Code>
      </Tabs.Panel>
    </Tabs>
  );
}

function RecordForm({ address, schema, stored, isReadOnly, onClose, onDelete }: RecordProps & { stored: Row | null }) {
  const server = useServer();
  const fields = Object.entries(schema.fields);
  const [texts, setTexts] = useState<Record<string, string>>(() =>
    Object.fromEntries(fields.map(([name, field]) => [name, editText(stored?.[name], field)])),
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
            problem={unread[name] ?? problems[name]?.message ?? null}
            // An id may be chosen for a new record.
            isReadOnly={
              isReadOnly || (stored === null ? field.generated && name !== "id" : field.generated || name === "id")
            }
            onChange={(text) => setTexts((before) => ({ ...before, [name]: text }))}
          />
        ))}
        {save.error === null || Object.keys(problems).length > 0 ? null : (
          <Alert color="red" role="alert">
            {messageOf(save.error)}
          </Alert>
        )}
        {isReadOnly ? null : (
          <Group justify="space-between" mt="sm">
            <Group gap="xs">
              <Button type="submit" loading={save.isPending}>
                {stored === null ? "Insert" : "Save"}
              </Button>
              <Button variant="default" onClick={onClose}>
                Cancel
              </Button>
            </Group>
            {stored === null ? null : (
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
      </Stack>
    </form>
  );
}

interface FieldInputProps {
  name: string;
  field: Field;
  address: TableAddress;
  text: string;
  problem: string | null;
  isReadOnly: boolean;
  onChange(text: string): void;
}

function FieldInput({ name, field, address, text, problem, isReadOnly, onChange }: FieldInputProps) {
  const common = {
    label: name,
    error: problem,
    readOnly: isReadOnly,
    withAsterisk: field.required && !field.generated,
  };
  const options = field.type === "boolean" ? ["true", "false"] : field.enum?.map(String);
  if (options !== undefined && !isReadOnly) {
    return (
      <Select
        {...common}
        data={options}
        value={text === "" ? null : text}
        clearable
        onChange={(next) => onChange(next ?? "")}
      />
    );
  }
  if (field.type === "json")
    return (
      <JsonInput
        validationError="This is no JSON"
        {...common}
        autosize
        minRows={2}
        maxRows={16}
        value={text}
        onChange={onChange}
      />
    );
  if (field.type === "text") {
    return (
      <Textarea
        {...common}
        autosize
        minRows={2}
        maxRows={12}
        value={text}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
    );
  }
  const { references } = field;
  const target = references === undefined || text === "" ? null : pageOf({ ...address, table: references.table });
  return (
    <TextInput
      {...common}
      description={
        target === null || references === undefined ? undefined : (
          <Text size="xs" component={Link} to={target} search={{ record: text } as never}>
            Open in {references.table}
          </Text>
        )
      }
      value={text}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}
