import { Badge, Group, SimpleGrid, Stack, Text } from "@mantine/core";
import { useRights } from "../../api/session.tsx";
import { agoText } from "../../parts/format.ts";
import { Page } from "../../parts/page.tsx";
import { Loadable } from "../../parts/states.tsx";
import { Check } from "./check.tsx";
import { FailedJobs } from "./failed-jobs.tsx";
import { useHealth } from "./health.ts";
import { LastChanges } from "./last-changes.tsx";
import { LoadCharts } from "./load-charts.tsx";
import { RequestCharts } from "./request-charts.tsx";
import { Warnings } from "./warnings.tsx";

/** Checks whose figures are charts. */
const DRAWN = ["sockets", "memory"];

/** Whether the server is well, what it does now, and what has happened last. */
export default function OverviewPage() {
  const { may } = useRights();
  const health = useHealth();
  return (
    <Page title="Overview">
      <Loadable query={health} rows={3}>
        {({ status, version, uptime, checks = {}, samples }) => (
          <Stack gap="md">
            <Group gap="sm">
              <Badge color={status === "ok" ? "green" : "red"} variant="light" size="lg">
                {status}
              </Badge>
              <Text size="sm" c="dimmed">
                Version {version}, started {agoText(Date.now() - uptime * 1000)}
              </Text>
            </Group>
            <SimpleGrid cols={{ base: 1, lg: 2 }}>
              {may("analytics", "*", "*", "read") ? <RequestCharts /> : null}
              {samples.length === 0 ? null : <LoadCharts samples={samples} />}
            </SimpleGrid>
            <SimpleGrid cols={{ base: 1, xs: 2, md: 3, xl: 5 }}>
              {Object.entries(checks)
                .filter(([name]) => !DRAWN.includes(name))
                .map(([name, { ok, ...facts }]) => (
                  <Check key={name} name={name} isFine={ok} facts={facts} />
                ))}
            </SimpleGrid>
          </Stack>
        )}
      </Loadable>
      <SimpleGrid cols={{ base: 1, lg: 2 }}>
        {may("audit", "*", "*", "read") ? <LastChanges /> : null}
        <Stack gap="md">
          {may("jobs", "*", "*", "read") ? <FailedJobs /> : null}
          {may("system", "*", "*", "read") ? <Warnings /> : null}
        </Stack>
      </SimpleGrid>
    </Page>
  );
}
