import { Badge, Card, Group, SimpleGrid, Stack, Table, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useMemo } from "react";
import { server } from "../../api/server.ts";
import { useRights } from "../../api/session.tsx";
import { FIGURES_EVERY_MS } from "../../limits.ts";
import { Chart, RequestsChart, ResponseTimesChart } from "../../parts/chart/chart.tsx";
import { agoText, bytesText, numberText } from "../../parts/format.tsx";
import { IconAlertTriangle, IconCircleCheck } from "../../parts/icons.tsx";
import { Page } from "../../parts/page.tsx";
import { Failure, Loadable, Loading } from "../../parts/states.tsx";
import { FailedJobs, LastChanges, Warnings } from "./events.tsx";
import { type Sample, useHealth } from "./health.ts";

/** Checks that are shown as charts and tables. */
const DRAWN = ["sockets", "memory", "processes", "cluster"];

/** Code that most servers do not need. */
const Parts = lazy(() => import("./cluster.tsx"));

/** Health of the server, its current load, and recent events. */
export default function OverviewPage() {
  const { may } = useRights();
  const health = useHealth();
  return (
    <Page title="Overview">
      <Loadable query={health} rows={3}>
        {({ status, version, uptime, checks = {}, processes, samples }) => (
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
            {processes.length > 1 || checks["cluster"] !== undefined ? (
              <Suspense>
                <Parts processes={processes} cluster={checks["cluster"]} />
              </Suspense>
            ) : null}
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

/** Requests of the last hour, by minute. */
export function RequestCharts() {
  const report = useQuery({
    queryKey: ["analytics", "overview"],
    refetchInterval: FIGURES_EVERY_MS,
    queryFn: () => server.analytics.requests({ range: "1h", groupBy: "minute" }),
  });
  if (report.data === undefined) {
    return report.error === null ? <Loading /> : <Failure error={report.error} onRetry={() => void report.refetch()} />;
  }
  const { timeSeries } = report.data;
  return (
    <>
      <RequestsChart points={timeSeries} hint="Last hour, numbers of the last minute" />
      <ResponseTimesChart points={timeSeries} hint="Last hour, numbers of the last minute" />
    </>
  );
}

const HINT = "Since you opened the dashboard";

/** Live connections and memory of the server. */
export function LoadCharts({ samples }: { samples: readonly Sample[] }) {
  const times = useMemo(() => samples.map(({ at }) => at), [samples]);
  const sockets = useMemo(
    () => ({
      title: "Live sockets",
      times,
      format: numberText,
      least: 4,
      series: [
        { name: "Realtime", colour: "blue", values: samples.map(({ realtime }) => realtime) },
        { name: "Rooms", colour: "teal", values: samples.map(({ rooms }) => rooms) },
      ] as const,
    }),
    [samples, times],
  );
  const memory = useMemo(
    () => ({
      title: "Memory",
      times,
      format: bytesText,
      least: 1_000_000,
      series: [{ name: "Resident", colour: "teal", values: samples.map(({ memoryBytes }) => memoryBytes) }] as const,
    }),
    [samples, times],
  );
  return (
    <>
      <Chart data={sockets} hint={HINT} />
      <Chart data={memory} hint={HINT} />
    </>
  );
}

/** One check of the server with its figures. */
export function Check({
  name,
  isFine,
  facts,
}: {
  name: string;
  isFine: boolean;
  facts: Readonly<Record<string, unknown>>;
}) {
  const Icon = isFine ? IconCircleCheck : IconAlertTriangle;
  return (
    <Card withBorder component="section" aria-label={name} p="sm">
      <Group justify="space-between" mb={4}>
        <Title order={2} size="h5" tt="capitalize">
          {name}
        </Title>
        <Icon
          size={20}
          color={isFine ? "var(--mantine-color-green-7)" : "var(--mantine-color-red-7)"}
          aria-label={isFine ? "well" : "not well"}
        />
      </Group>
      <Table withRowBorders={false} verticalSpacing={2} horizontalSpacing={0}>
        <Table.Tbody>
          {Object.entries(facts).map(([fact, value]) => (
            <Table.Tr key={fact}>
              <Table.Td c="dimmed">{wordsOf(fact)}</Table.Td>
              <Table.Td ta="right" className="number">
                {factText(fact, value)}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Card>
  );
}

/** Plain names of a check's figures. */
const WORDS: Readonly<Record<string, string>> = {
  walBytes: "not yet merged",
  inPlace: "where it belongs",
};

/** Returns the plain name of a figure: `freeBytes` is "free", `lastMs` is "last took". */
const wordsOf = (name: string): string =>
  WORDS[name] ??
  name
    .replace(/(?<=.)(?:Bytes|At)$/, "")
    .replace(/Ms$/, "Took")
    .replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

function factText(name: string, value: unknown): string {
  if (value === null || value === undefined) return "never";
  if (typeof value === "number") {
    if (/bytes$/i.test(name)) return bytesText(value);
    return name.endsWith("Ms") ? `${numberText(value)} ms` : numberText(value);
  }
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "object") return JSON.stringify(value);
  return typeof value === "string" && /(?:At|Until)$/.test(name) ? agoText(value) : String(value);
}
