import { Badge, Button, Group, SegmentedControl, Stack, Table, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation } from "@tanstack/react-query";
import { Fragment, type ReactNode, useState } from "react";
import type { JobRecord, JobState } from "../../../client/admin/index.ts";
import { messageOf, queries, server } from "../../api/server.ts";
import { useRights } from "../../api/session.tsx";
import { Ago } from "../../parts/format.tsx";
import { IconX } from "../../parts/icons.tsx";
import { Json } from "../../parts/json.tsx";
import { OPENING_ROW, Paged, usePaged, Wide, WideDetail } from "../../parts/list/list.tsx";
import { usePageState } from "../../parts/page.tsx";
import { Empty } from "../../parts/states.tsx";
import { RunAgain } from "./run-again.tsx";

const STATES: readonly JobState[] = ["waiting", "running", "failed", "done"];

/** Returns the state filter of job lists, kept in the address; null: every state. */
function useStateFilter() {
  const { state, change } = usePageState<{ state: JobState }>();
  return { state: STATES.find((one) => one === state.state) ?? null, change };
}

export function StateFilter() {
  const { state, change } = useStateFilter();
  return (
    <SegmentedControl
      aria-label="State"
      w="fit-content"
      data={["all", ...STATES]}
      value={state ?? "all"}
      onChange={(next) => change({ state: STATES.find((one) => one === next) })}
    />
  );
}

/** Polling interval of jobs, and of the push log. */
const JOBS_EVERY_MS = 3_000;

const PAGE = 50;
const COLOURS: Readonly<Record<JobState, string>> = {
  waiting: "blue",
  running: "yellow",
  done: "green",
  failed: "red",
};

interface Listed {
  /** Name of the jobs; null: every name. */
  name: string | null;
  /** Returns the detail that opens below a job. */
  detailOf(job: JobRecord): ReactNode;
}

/** Jobs in the filtered state, newest first, with their actions. */
export function JobList({ name, empty, detailOf }: Listed & { empty: ReactNode }) {
  const { state } = useStateFilter();
  const list = usePaged({
    queryKey: ["jobs", name, state],
    refetchInterval: JOBS_EVERY_MS,
    load: (cursor) =>
      server.jobs.list({
        limit: PAGE,
        cursor,
        ...(state === null ? {} : { state }),
        ...(name === null ? {} : { name }),
      }),
  });
  return (
    <Paged list={list} empty={empty}>
      {(jobs) => (
        <Wide minWidth={720}>
          <Table>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Job</Table.Th>
                <Table.Th>State</Table.Th>
                <Table.Th ta="right">Tries</Table.Th>
                <Table.Th>Enqueued</Table.Th>
                <Table.Th>Due or done</Table.Th>
                <Table.Th aria-label="Actions" />
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {jobs.map((job) => (
                <JobLines key={job.id} job={job} detailOf={detailOf} />
              ))}
            </Table.Tbody>
          </Table>
        </Wide>
      )}
    </Paged>
  );
}

function JobLines({ job, detailOf }: { job: JobRecord } & Pick<Listed, "detailOf">) {
  const [isOpen, setIsOpen] = useState(false);
  const { id, name, state, waitingFor, attempt, createdAt, dueAt, finishedAt } = job;
  return (
    <Fragment>
      <Table.Tr {...OPENING_ROW}>
        <Table.Td>
          <Button variant="subtle" size="compact-sm" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
            {name}
          </Button>
        </Table.Td>
        <Table.Td>
          <Badge color={COLOURS[state]} variant="light">
            {waitingFor === "drill" ? "waits for the drill to end" : state}
          </Badge>
        </Table.Td>
        <Table.Td ta="right" className="number">
          {attempt}
        </Table.Td>
        <Table.Td>
          <Ago time={createdAt} />
        </Table.Td>
        <Table.Td>
          <Ago time={finishedAt ?? dueAt} />
        </Table.Td>
        <Table.Td>
          <JobActions job={job} />
        </Table.Td>
      </Table.Tr>
      {isOpen ? (
        <Table.Tr>
          <Table.Td colSpan={6}>
            <WideDetail>
              <Text size="xs" c="dimmed" ff="monospace" mb={4}>
                {id}
              </Text>
              {detailOf(job)}
            </WideDetail>
          </Table.Td>
        </Table.Tr>
      ) : null}
    </Fragment>
  );
}

function JobActions({ job: { id, name, state } }: { job: JobRecord }) {
  const { may } = useRights();
  const act = useMutation({
    mutationFn: (action: string) => server.request("POST", `/api/admin/jobs/${encodeURIComponent(id)}/${action}`),
    onSettled: () => queries.invalidateQueries({ queryKey: ["jobs"] }),
    onError: (error) => notifications.show({ color: "red", title: "This did not work", message: messageOf(error) }),
  });
  if (!may("jobs", "*", name, "write")) return null;
  const button = (label: string, action: string) => (
    <Button key={action} size="compact-sm" variant="default" loading={act.isPending} onClick={() => act.mutate(action)}>
      {label}
    </Button>
  );
  return (
    <Group gap={6} justify="flex-end" wrap="nowrap">
      {state === "failed" ? button("Retry", "retry") : null}
      {state === "waiting" ? button("Run", "run-now") : null}
      {state === "waiting" || state === "running" ? button("Cancel", "cancel") : null}
    </Group>
  );
}

/** All jobs, with data and errors. */
export function JobsView() {
  const { state } = useStateFilter();
  const { state: chosen, change } = usePageState<{ name: string }>();
  const name = chosen.name === undefined || chosen.name === "" ? null : chosen.name;
  return (
    <Stack gap="md">
      <Group gap="xs">
        <StateFilter />
        {name === null ? null : (
          <Button
            variant="default"
            rightSection={<IconX size={14} aria-hidden />}
            aria-label={`Jobs of every name, not only ${name}`}
            onClick={() => change({ name: undefined })}
          >
            {name}
          </Button>
        )}
      </Group>
      <JobList
        name={name}
        empty={
          <Empty title={state === null && name === null ? "No jobs yet" : `No ${state ?? "such"} jobs`}>
            Jobs are declared under <code>jobs</code> and <code>cron</code>; mail and webhooks are jobs too.
          </Empty>
        }
        detailOf={(job) => (
          <>
            {job.error === null ? null : (
              <Text size="sm" c="var(--mantine-color-error)" mb={4} className="wrapped">
                {job.error}
              </Text>
            )}
            <Json value={job.data} />
            <RunAgain job={job} />
          </>
        )}
      />
    </Stack>
  );
}
