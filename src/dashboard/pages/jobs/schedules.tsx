import { Anchor, Button, Code, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { messageOf, queries, server } from "../../api/server.ts";
import { useRights } from "../../api/session.tsx";
import { Ago, agoText, timeText } from "../../parts/format.tsx";
import { DataTable } from "../../parts/list/data-table.tsx";
import { Empty, Loadable } from "../../parts/states.tsx";

/** Schedules with their next runs. */
export function Schedules() {
  const schedules = useQuery({ queryKey: ["schedules"], queryFn: () => server.jobs.schedules() });
  return (
    <Loadable query={schedules}>
      {(found) =>
        found.length === 0 ? (
          <Empty title="No schedules">
            Declare code that runs at times under <code>cron</code>; <code>backups</code> have a schedule too.
          </Empty>
        ) : (
          <>
            <DataTable
              label="Schedules"
              minWidth={680}
              items={found}
              keyOf={({ name }) => name}
              columns={[
                { title: "Schedule", show: ({ name }) => name },
                {
                  title: "Times",
                  show: ({ schedule, timezone }) => (
                    <>
                      <Code>{schedule}</Code>
                      <Text size="xs" c="dimmed">
                        {timezone}
                      </Text>
                    </>
                  ),
                },
                { title: "Last", show: ({ lastAt }) => <Ago time={lastAt} /> },
                { title: "Next", show: ({ next }) => <NextRuns next={next} /> },
                { align: "right", show: ({ name }) => <RunNow name={name} /> },
              ]}
            />
            <Text size="sm" mt="xs">
              Each run is a job with the name of the schedule: see the{" "}
              <Anchor component={Link} to="/jobs" size="sm" underline="always">
                queue
              </Anchor>
              .
            </Text>
          </>
        )
      }
    </Loadable>
  );
}

function RunNow({ name }: { name: string }) {
  const { may } = useRights();
  const run = useMutation({
    mutationFn: () => server.jobs.runSchedule(name),
    onSettled: () => queries.invalidateQueries({ queryKey: ["jobs"] }),
    onSuccess: (id) => notifications.show({ title: `${name} runs`, message: `Job ${id} is in the queue` }),
    onError: (error) => notifications.show({ color: "red", title: "This did not work", message: messageOf(error) }),
  });
  if (!may("jobs", "*", name, "write")) return null;
  return (
    <Button size="compact-sm" variant="default" loading={run.isPending} onClick={() => run.mutate()}>
      Run now
    </Button>
  );
}

/** Next runs in local time. The title of each shows the time from now. */
function NextRuns({ next }: { next: readonly string[] }) {
  if (next.length === 0) return <Text size="sm">never</Text>;
  return (
    <ul className="plain-list">
      {next.map((time) => (
        <li key={time}>
          <time dateTime={time} title={agoText(time)}>
            {timeText(time)}
          </time>
        </li>
      ))}
    </ul>
  );
}
