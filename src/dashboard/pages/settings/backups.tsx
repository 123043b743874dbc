import { Alert, Badge, Button, Group, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery } from "@tanstack/react-query";
import type { Backup, BackupRun } from "../../../client/admin/index.ts";
import { messageOf, queries, server } from "../../api/server.ts";
import { useRights } from "../../api/session.tsx";
import { Ago, bytesText } from "../../parts/format.tsx";
import { DataTable } from "../../parts/list/data-table.tsx";
import { Section } from "../../parts/page.tsx";
import { Empty, Loadable } from "../../parts/states.tsx";
import { Continuous } from "./continuous.tsx";

/** Polling interval of backups. */
const BACKUPS_EVERY_MS = 3_000;

const KEY = ["backups"];

function useAct<Given = void>(act: (given: Given) => Promise<unknown>, done: string | null) {
  return useMutation({
    mutationFn: act,
    onSuccess: () => (done === null ? null : notifications.show({ message: done })),
    onError: (error) => notifications.show({ color: "red", title: "This did not work", message: messageOf(error) }),
    onSettled: () => queries.invalidateQueries({ queryKey: KEY }),
  });
}

/** Stored backups, with creation, verification (a rehearsed restore) and download. */
export function Backups() {
  const { may } = useRights();
  const list = useQuery({ queryKey: KEY, refetchInterval: BACKUPS_EVERY_MS, queryFn: () => server.backups.list() });
  const making = useAct(() => server.backups.create(), "The backup is made");
  return (
    <Loadable query={list}>
      {({ place, schedule, keep, continuous, backups, runs }) => (
        <Stack gap="md">
          {continuous ? <Continuous /> : null}
          <Section
            title="Backups"
            actions={
              may("backups", "*", "*", "write") ? (
                <Button size="compact-sm" loading={making.isPending} onClick={() => making.mutate()}>
                  Make a backup
                </Button>
              ) : null
            }
          >
            <Text size="sm" c="dimmed" mb="xs" className="wrapped">
              Stored in {place}, {schedule === null ? "without a schedule" : `at "${schedule}" (UTC)`}; the newest{" "}
              {keep} are kept.
            </Text>
            {backups.length === 0 ? (
              <Empty title="No backups yet">
                Make one here, or declare a schedule under <code>backups</code>.
              </Empty>
            ) : (
              <BackupTable backups={backups} />
            )}
          </Section>
          {runs.length === 0 ? null : <Runs runs={runs} />}
        </Stack>
      )}
    </Loadable>
  );
}

function BackupTable({ backups }: { backups: readonly Backup[] }) {
  const { may } = useRights();
  const verifying = useAct(async (name: string) => {
    const run = await server.backups.verify(name);
    if (run.state !== "done") throw new Error(run.error ?? "The backup does not hold");
    notifications.show({ message: "The backup holds: it was restored and checked" });
  }, null);
  const downloading = useAct(async (name: string) => location.assign(await server.backups.link(name)), null);
  return (
    <DataTable
      label="Backups"
      minWidth={640}
      items={backups}
      keyOf={({ name }) => name}
      columns={[
        {
          title: "Backup",
          maxWidth: 300,
          show: ({ name }) => (
            <Text size="sm" ff="monospace" truncate title={name}>
              {name}
            </Text>
          ),
        },
        { title: "Made", show: ({ createdAt }) => <Ago time={createdAt} /> },
        { title: "Size", isNumber: true, show: ({ size }) => bytesText(size) },
        { title: "Verified", show: (backup) => <Verified {...backup} /> },
        {
          show: ({ name }) => (
            <Group gap={6} justify="flex-end" wrap="nowrap">
              {may("backups", "*", "*", "write") ? (
                <Button
                  size="compact-sm"
                  variant="default"
                  loading={verifying.isPending && verifying.variables === name}
                  onClick={() => verifying.mutate(name)}
                >
                  Verify
                </Button>
              ) : null}
              <Button size="compact-sm" variant="default" onClick={() => downloading.mutate(name)}>
                Download
              </Button>
            </Group>
          ),
        },
      ]}
    />
  );
}

function Verified({ failed, verifiedAt }: Backup) {
  if (verifiedAt !== null && !failed) return <Ago time={verifiedAt} />;
  if (!failed) return "unknown";
  return (
    <Badge color="red" variant="light">
      did not hold
    </Badge>
  );
}

const NAMES = { create: "Backup", verify: "Verification" };

function Runs({ runs }: { runs: readonly BackupRun[] }) {
  return (
    <Section title="Since the start of the server">
      <ul className="plain-list lines">
        {runs.map(({ id, action, backup, state, endedAt, error, files, contentBytes }) => (
          <Stack key={id} component="li" gap={2} py={6}>
            <Group justify="space-between" wrap="nowrap">
              <Text size="sm" truncate>
                {NAMES[action]} {state}
                {backup === null ? "" : `: ${backup}`}
              </Text>
              <Text size="sm" c="dimmed" component="div">
                {endedAt === null ? "now" : <Ago time={endedAt} />}
              </Text>
            </Group>
            {files === null || contentBytes === null ? null : (
              <Text size="xs" c="dimmed">
                {files} files, {bytesText(contentBytes)}
              </Text>
            )}
            {error === null ? null : (
              <Alert color="red" variant="light" p="xs" className="wrapped">
                {error}
              </Alert>
            )}
          </Stack>
        ))}
      </ul>
    </Section>
  );
}
