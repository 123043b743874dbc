import { Alert, Badge, Button, Group, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery } from "@tanstack/react-query";
import type { ContinuousBackup } from "../../../client/admin/index.ts";
import { messageOf, queries, server } from "../../api/server.ts";
import { useRights } from "../../api/session.tsx";
import { Ago, bytesText, millisText } from "../../parts/format.tsx";
import { Section } from "../../parts/page.tsx";
import { Loadable } from "../../parts/states.tsx";
import { RestoreAll } from "./restore-all.tsx";
import { RestoreInstance } from "./restore-instance.tsx";
import { TimeLine } from "./time-line.tsx";

/** Polling interval. The server reads the place each time. */
const CONTINUOUS_EVERY_MS = 15_000;

const KEY = ["continuous"];

/** Continuous backup: how far it is, which moments can be restored, and the restore of one instance. */
export function Continuous() {
  const { may, isRoot } = useRights();
  const shown = useQuery({
    queryKey: KEY,
    refetchInterval: CONTINUOUS_EVERY_MS,
    queryFn: () => server.backups.continuous(),
  });
  const verifying = useMutation({
    mutationFn: () => server.backups.verifyContinuous(),
    onSuccess: () => notifications.show({ message: "The verification has begun" }),
    onError: (error) => notifications.show({ color: "red", title: "This did not work", message: messageOf(error) }),
    onSettled: () => queries.invalidateQueries({ queryKey: KEY }),
  });
  return (
    <>
      <Section
        title="Continuous backup"
        actions={
          may("backups", "*", "*", "write") ? (
            <Button
              size="compact-sm"
              variant="default"
              loading={verifying.isPending}
              onClick={() => verifying.mutate()}
            >
              Verify now
            </Button>
          ) : null
        }
      >
        <Loadable query={shown}>{(backup) => <State backup={backup} />}</Loadable>
      </Section>
      {isRoot ? <RestoreInstance /> : null}
      <RestoreAll />
    </>
  );
}

function State({ backup }: { backup: ContinuousBackup }) {
  const { place, everyMs, keepDays, ok, lagMs, lagBytes, verified, verifiedAt, message, history } = backup;
  return (
    <Stack gap="sm">
      <Text size="sm" c="dimmed" className="wrapped">
        {place} gets every commit within {millisText(everyMs)}; moments are kept for {keepDays}{" "}
        {keepDays === 1 ? "day" : "days"}.
      </Text>
      <Group gap="md">
        <Badge color={ok ? "green" : "red"} variant="light">
          {ok ? "works" : "does not work"}
        </Badge>
        <Text size="sm">{lagText({ lagMs, lagBytes, everyMs })}</Text>
        <Text size="sm" component="div">
          {verified === false ? "The last verification failed" : <Verified at={verifiedAt} />}
        </Text>
      </Group>
      {message === null ? null : (
        <Alert color={ok ? "yellow" : "red"} variant="light" p="xs" className="wrapped">
          {message}
        </Alert>
      )}
      {history === null ? null : <TimeLine label="Moments that can be restored" history={history} />}
    </Stack>
  );
}

/** Says how far the place is behind; commits that wait for the next interval are not late. */
function lagText({ lagMs, lagBytes, everyMs }: Pick<ContinuousBackup, "lagMs" | "lagBytes" | "everyMs">): string {
  if (lagMs === 0) return "Everything is stored";
  if (lagMs <= 2 * everyMs) return `Stored but for the last ${millisText(lagMs)}`;
  return `${millisText(lagMs)} behind, ${bytesText(lagBytes)}`;
}

function Verified({ at }: { at: string | null }) {
  if (at === null) return "Not verified yet";
  return (
    <>
      Verified <Ago time={at} />
    </>
  );
}
