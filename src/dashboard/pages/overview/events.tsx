import { Anchor, Box, Code, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useResources } from "../../api/resources.ts";
import { server } from "../../api/server.ts";
import { FIGURES_EVERY_MS } from "../../limits.ts";
import { Ago } from "../../parts/format.tsx";
import { Section } from "../../parts/page.tsx";
import { Loadable } from "../../parts/states.tsx";

interface EventLine {
  key: string;
  name: string;
  detail: string;
  /** Time of the event; null: unknown. */
  at: string | null;
}

/** Events, one line each with its time, and a second line for the detail. */
function EventLines({ lines }: { lines: readonly EventLine[] }) {
  if (lines.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        None.
      </Text>
    );
  }
  return (
    <ul className="plain-list lines">
      {lines.map(({ key, name, detail, at }) => (
        <Box component="li" key={key} py={4}>
          <Group justify="space-between" wrap="nowrap" gap="xs">
            <Text size="sm" truncate>
              {name}
            </Text>
            <Text size="sm" c="dimmed" component="div">
              <Ago time={at} />
            </Text>
          </Group>
          <Text size="xs" c="dimmed" truncate title={detail}>
            {detail}
          </Text>
        </Box>
      ))}
    </ul>
  );
}

const FAILED_SHOWN = 6;
const FAILED = { state: "failed" };

export function FailedJobs() {
  const jobs = useQuery({
    queryKey: ["jobs", "failed last"],
    refetchInterval: FIGURES_EVERY_MS,
    queryFn: () => server.jobs.list({ state: "failed", limit: FAILED_SHOWN }),
  });
  return (
    <Section
      title="Jobs that failed"
      actions={
        <Anchor component={Link} to="/jobs" search={FAILED as never} size="sm">
          All failed jobs
        </Anchor>
      }
    >
      <Loadable query={jobs} rows={2}>
        {({ items }) => (
          <EventLines
            lines={items.map(({ id, name, error, finishedAt }) => ({
              key: id,
              name,
              detail: error ?? "",
              at: finishedAt,
            }))}
          />
        )}
      </Loadable>
    </Section>
  );
}

const CHANGES_SHOWN = 8;

/** Newest entries of the audit log. */
export function LastChanges() {
  const entries = useQuery({
    queryKey: ["audit", "last"],
    refetchInterval: FIGURES_EVERY_MS,
    queryFn: () => server.audit.list({ limit: CHANGES_SHOWN }),
  });
  return (
    <Section
      title="Last changes"
      actions={
        <Anchor component={Link} to="/audit" size="sm">
          Audit log
        </Anchor>
      }
    >
      <Loadable query={entries} rows={2}>
        {({ items }) => (
          <EventLines
            lines={items.map(({ at, actor, action, target, requestId }) => ({
              key: `${at} ${action} ${target} ${requestId}`,
              name: `${action} by ${actor.name ?? actor.kind}${actor.as === undefined ? "" : ` as ${actor.as}`}`,
              detail: target,
              at,
            }))}
          />
        )}
      </Loadable>
    </Section>
  );
}

/** Warnings of `platform check` about the running config. */
export function Warnings() {
  const resources = useResources();
  return (
    <Section title="Warnings of the config">
      <Loadable query={resources} rows={2}>
        {({ warnings }) =>
          warnings.length === 0 ? (
            <Text size="sm" c="dimmed">
              None.
            </Text>
          ) : (
            <Stack gap={6} component="ul" className="plain-list">
              {warnings.map(({ path, message }) => (
                <Text key={`${path} ${message}`} size="sm" component="li">
                  <Code>{path}</Code> {message}
                </Text>
              ))}
            </Stack>
          )
        }
      </Loadable>
    </Section>
  );
}
