import { ActionIcon, Button, Group, Stack, Text, TextInput, Title } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type SyntheticEvent, useState } from "react";
import type { FileMetadata } from "../../../client/storage/types.ts";
import { queries } from "../../api/server.ts";
import { IconPlus, IconTrash } from "../../parts/icons.tsx";
import { Problem } from "../../parts/states.tsx";
import { useServer, useViewAs } from "../../shell/view-as.tsx";

interface Entry {
  id: number;
  name: string;
  value: string;
}

const entriesOf = (metadata: FileMetadata["metadata"]): Entry[] =>
  Object.entries(metadata).map(([name, value], id) => ({ id, name, value }));

/** Custom metadata of a file. */
export function Metadata({ bucket, file, isWritable }: { bucket: string; file: FileMetadata; isWritable: boolean }) {
  const server = useServer();
  const as = useViewAs();
  /** Edited metadata, and the stored metadata it started from, which others may change meanwhile; null: unedited. */
  const [draft, setDraft] = useState<{ entries: readonly Entry[]; of: FileMetadata["metadata"] } | null>(null);
  const { entries, of } = draft ?? { entries: entriesOf(file.metadata), of: file.metadata };
  const change = (next: readonly Entry[]): void => setDraft({ entries: next, of });
  const save = useMutation({
    mutationFn() {
      const wanted = new Map(entries.filter(({ name }) => name !== "").map(({ name, value }) => [name, value]));
      const gone = Object.keys(of).filter((name) => !wanted.has(name));
      const changed = [...wanted].filter(([name, value]) => of[name] !== value);
      const changes = Object.fromEntries([...changed, ...gone.map((name): [string, null] => [name, null])]);
      return server.storage(bucket).setMetadata(file.key, changes);
    },
    onSuccess: (saved) => queries.setQueryData(["files", bucket, "file", as, file.key], saved),
  });
  const edit = (id: number, changes: Partial<Entry>): void =>
    change(entries.map((entry) => (entry.id === id ? { ...entry, ...changes } : entry)));
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    // Input typed during the save stays.
    save.mutate(undefined, { onSuccess: () => setDraft((now) => (now === draft ? null : now)) });
  };
  return (
    <form onSubmit={submit} aria-label="Metadata">
      <Stack gap="xs">
        <Title order={3} size="h6">
          Metadata
        </Title>
        {entries.length === 0 ? (
          <Text size="sm" c="dimmed">
            {isWritable ? "None yet. Texts that belong to the file go here, such as who is in a picture." : "None."}
          </Text>
        ) : null}
        {entries.map(({ id, name, value }) => (
          <Group key={id} gap="xs" wrap="nowrap">
            <TextInput
              aria-label="Name"
              placeholder="Name"
              flex="1 1 40%"
              value={name}
              readOnly={!isWritable}
              onChange={(event) => edit(id, { name: event.currentTarget.value })}
            />
            <TextInput
              aria-label={name === "" ? "Value" : `Value of ${name}`}
              placeholder="Value"
              flex="1 1 60%"
              value={value}
              readOnly={!isWritable}
              onChange={(event) => edit(id, { value: event.currentTarget.value })}
            />
            {isWritable ? (
              <ActionIcon
                variant="subtle"
                color="gray"
                aria-label={`Remove ${name}`}
                onClick={() => change(entries.filter((entry) => entry.id !== id))}
              >
                <IconTrash size={16} aria-hidden />
              </ActionIcon>
            ) : null}
          </Group>
        ))}
        <Problem of={save.error} />
        {isWritable ? (
          <Group gap="xs">
            <Button
              size="xs"
              variant="default"
              leftSection={<IconPlus size={14} aria-hidden />}
              onClick={() =>
                change([...entries, { id: Math.max(-1, ...entries.map(({ id }) => id)) + 1, name: "", value: "" }])
              }
            >
              Add
            </Button>
            {draft !== null ? (
              <>
                <Button size="xs" type="submit" loading={save.isPending}>
                  Save
                </Button>
                <Button size="xs" variant="default" onClick={() => setDraft(null)}>
                  Cancel
                </Button>
              </>
            ) : null}
          </Group>
        ) : null}
      </Stack>
    </form>
  );
}
