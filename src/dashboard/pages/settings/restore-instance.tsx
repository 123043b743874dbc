import { Button, Group, Select, Stack, Text, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import type { BackupHistory, InstanceRestore } from "../../../client/admin/index.ts";
import { useResources } from "../../api/resources.ts";
import { queries, server } from "../../api/server.ts";
import { Confirm } from "../../parts/confirm.tsx";
import { numberText, timeText } from "../../parts/format.tsx";
import { DataTable } from "../../parts/list/data-table.tsx";
import { Section } from "../../parts/page.tsx";
import { Problem } from "../../parts/states.tsx";
import { TimeLine } from "./time-line.tsx";

/** A restore that is asked for. */
interface Wanted {
  namespace: string;
  id: string;
  at: string;
}

interface Previewed {
  wanted: Wanted;
  counts: InstanceRestore;
  history: BackupHistory | null;
}

async function previewOf(wanted: Wanted): Promise<Previewed> {
  const { namespace, id, at } = wanted;
  const counts = await server.instances(namespace).restore(id, { at, preview: true });
  const { history } = await server.backups.continuous({ file: `${namespace}/${id}` });
  return { wanted, counts, history };
}

/** Form that gives one instance the content of an earlier moment, after a preview. For the root key. */
export function RestoreInstance() {
  const { data } = useResources();
  const namespaces = Object.entries(data?.namespaces ?? {}).flatMap(([name, { instance }]) => (instance ? [name] : []));
  const [chosen, setChosen] = useState<string | null>(null);
  const [id, setId] = useState("");
  const [moment, setMoment] = useState("");
  const preview = useMutation({ mutationFn: previewOf });
  const restoring = useMutation({
    mutationFn: ({ namespace, id: of, at }: Wanted) => server.instances(namespace).restore(of, { at }),
    onSuccess: ({ at }, { id: of }) => {
      notifications.show({ message: `${of} is as it was at ${timeText(at)}` });
      preview.reset();
    },
    onSettled: () => queries.invalidateQueries(),
  });
  if (namespaces.length === 0) return null;
  const namespace = chosen ?? namespaces[0] ?? "";
  const time = new Date(moment);
  const isComplete = id !== "" && !Number.isNaN(time.getTime());
  /** Changes the form, and drops a preview of what it said before. */
  const changed = (change: () => void): void => {
    change();
    preview.reset();
    restoring.reset();
  };
  return (
    <Section title="Restore an instance">
      <Stack gap="sm" align="stretch">
        <Text size="sm" c="dimmed">
          Gives one instance the content that it had, a deleted one too. What it has now stays in the history, so that a
          restore can be undone by another one.
        </Text>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (isComplete) preview.mutate({ namespace, id, at: time.toISOString() });
          }}
        >
          <Group align="flex-end" gap="sm">
            <Select
              label="Namespace"
              data={namespaces}
              value={namespace}
              allowDeselect={false}
              onChange={(value) => changed(() => setChosen(value))}
            />
            <TextInput
              label="Instance"
              value={id}
              onChange={({ currentTarget: { value } }) => changed(() => setId(value.trim()))}
            />
            <TextInput
              label="Moment, in your time zone"
              type="datetime-local"
              step={1}
              value={moment}
              onChange={({ currentTarget: { value } }) => changed(() => setMoment(value))}
            />
            <Button type="submit" variant="default" disabled={!isComplete} loading={preview.isPending}>
              Preview
            </Button>
          </Group>
        </form>
        <Problem of={preview.error ?? restoring.error} />
        {preview.data === undefined ? null : (
          <Preview previewed={preview.data} isRestoring={restoring.isPending} onRestore={restoring.mutate} />
        )}
      </Stack>
    </Section>
  );
}

function Preview({
  previewed: { wanted, counts, history },
  isRestoring,
  onRestore,
}: {
  previewed: Previewed;
  isRestoring: boolean;
  onRestore: (wanted: Wanted) => void;
}) {
  const { namespace, id } = wanted;
  const tables = Object.entries(counts.tables).map(([name, count]) => ({ name, ...count }));
  return (
    <>
      {history === null ? null : <TimeLine label={`Moments of ${id}`} history={history} />}
      <Text size="sm">
        As of {timeText(counts.at)}, {namespace}/{id} had these records:
      </Text>
      <DataTable
        label="Records then and now"
        items={tables}
        keyOf={({ name }) => name}
        columns={[
          { title: "Table", font: "monospace", show: ({ name }) => name },
          { title: "Then", isNumber: true, show: ({ then }) => numberText(then) },
          { title: "Now", isNumber: true, show: ({ now }) => numberText(now) },
          { title: "Change", isNumber: true, show: ({ then, now }) => changeText(then - now) },
        ]}
      />
      <Group>
        {isRestoring ? (
          <Button loading>Restore</Button>
        ) : (
          <Confirm
            action="Restore"
            question={`Give ${namespace}/${id} the content of ${timeText(counts.at)}? Everything later in it goes; the history keeps it.`}
            onConfirm={() => onRestore(wanted)}
          />
        )}
      </Group>
    </>
  );
}

const changeText = (change: number): string =>
  change === 0 ? "0" : `${change > 0 ? "+" : "−"}${numberText(Math.abs(change))}`;
