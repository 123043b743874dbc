import { Button, Group, JsonInput, Modal, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import type { JobRecord } from "../../../client/admin/index.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { useResources } from "../../api/resources.ts";
import { messageOf, queries, server } from "../../api/server.ts";
import { useRights } from "../../api/session.tsx";
import { parseJson, textHeight } from "../../parts/json.tsx";

/** Button that runs a job of the config again with edited data; nothing for other jobs, or a key that may not. */
export function RunAgain({ job }: { job: JobRecord }) {
  const { may } = useRights();
  const [text, setText] = useState<string | null>(null);
  const isDeclared = useResources().data?.jobs.includes(job.name) === true;
  if (!isDeclared || !may("jobs", "*", job.name, "write")) return null;
  return (
    <>
      <Button size="compact-sm" variant="default" mt="xs" onClick={() => setText(JSON.stringify(job.data, null, 2))}>
        Run again with other data
      </Button>
      {text === null ? null : <DataDialog job={job} text={text} onChange={setText} onClose={() => setText(null)} />}
    </>
  );
}

function DataDialog({
  job: { id, name },
  text,
  onChange,
  onClose,
}: {
  job: JobRecord;
  text: string;
  onChange(text: string): void;
  onClose(): void;
}) {
  const run = useMutation({
    // The parser takes JSON alone.
    mutationFn: async () => server.jobs.runAgain(id, parseJson(text) as JsonValue),
    onSuccess() {
      notifications.show({ message: `A new job ${name} has been added` });
      void queries.invalidateQueries({ queryKey: ["jobs"] });
      onClose();
    },
  });
  return (
    <Modal opened onClose={onClose} title={`Run ${name} again`} size="lg">
      <Stack gap="sm">
        <Text size="sm">A new job is added with this data. The earlier one stays as it is.</Text>
        <JsonInput
          label="Data"
          validationError="This is no JSON"
          error={run.error === null ? undefined : messageOf(run.error)}
          {...textHeight(text, 4, 20)}
          value={text}
          onChange={(next) => {
            run.reset();
            onChange(next);
          }}
        />
        <Group gap="xs">
          <Button loading={run.isPending} onClick={() => run.mutate()}>
            Run
          </Button>
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
