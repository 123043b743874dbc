import { SimpleGrid, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useMemo } from "react";
import type { RequestPoint } from "../../../client/admin/index.ts";
import { server } from "../../api/server.ts";
import { Chart, RequestsChart, ResponseTimesChart } from "../../parts/chart/chart.tsx";
import { Ago, millisText, numberText } from "../../parts/format.tsx";
import { DataTable } from "../../parts/list/data-table.tsx";
import { Paged, usePaged } from "../../parts/list/list.tsx";
import { Section } from "../../parts/page.tsx";
import { Empty, Loadable } from "../../parts/states.tsx";
import { type Range, STEPS } from "./ranges.ts";
import { RequestPath } from "./story/kept-requests.tsx";
import { SlowQueries } from "./story/slow-queries.tsx";

/** Number with its name. */
function Figure({ name, children }: { name: string; children: ReactNode }) {
  return (
    <Stack gap={0}>
      <Text size="sm" c="dimmed">
        {name}
      </Text>
      <Text size="xl" fw={600} className="number" component="div">
        {children}
      </Text>
    </Stack>
  );
}

export function Requests({ range }: { range: Range }) {
  const { groupBy, hint } = STEPS[range];
  const report = useQuery({
    queryKey: ["analytics", "requests", range],
    queryFn: () => server.analytics.requests({ range, groupBy }),
  });
  return (
    <Stack gap="md">
      <Loadable query={report}>
        {({ summary, timeSeries }) => (
          <>
            <SimpleGrid cols={{ base: 2, sm: 3, lg: 6 }}>
              <Figure name="Requests">{numberText(summary.totalRequests)}</Figure>
              <Figure name="Users">{numberText(summary.uniqueUsers)}</Figure>
              <Figure name="Refused (4xx)">{numberText(summary.errors4xx)}</Figure>
              <Figure name="Failed (5xx)">{numberText(summary.totalErrors)}</Figure>
              <Figure name="Median">{millisText(summary.p50)}</Figure>
              <Figure name="99 of 100 within">{millisText(summary.p99)}</Figure>
            </SimpleGrid>
            <SimpleGrid cols={{ base: 1, lg: 3 }}>
              <RequestsChart points={timeSeries} hint={hint} />
              <ResponseTimesChart points={timeSeries} hint={hint} />
              <UsersChart points={timeSeries} hint={hint} />
            </SimpleGrid>
          </>
        )}
      </Loadable>
      <Targets range={range} />
      <SlowRequests range={range} />
      <SlowQueries />
    </Stack>
  );
}

function UsersChart({ points, hint }: { points: readonly RequestPoint[]; hint: string }) {
  const data = useMemo(
    () => ({
      title: "Users",
      times: points.map(({ timestamp }) => timestamp),
      format: numberText,
      least: 4,
      series: [{ name: "Signed in", colour: "teal", values: points.map(({ uniqueUsers }) => uniqueUsers) }] as const,
    }),
    [points],
  );
  return <Chart data={data} hint={hint} />;
}

const SLOW_PAGE = 25;

/** Slow requests with the time spent in each phase. */
function SlowRequests({ range }: { range: Range }) {
  const list = usePaged({
    queryKey: ["analytics", "slow", range],
    load: (cursor) => server.analytics.slowRequests({ from: Date.now() - STEPS[range].ms, limit: SLOW_PAGE, cursor }),
  });
  return (
    <Section title="Slow requests">
      <Paged
        list={list}
        rows={3}
        empty={
          <Empty title="None was slow">
            Requests of this time that took longer than half a second; they are kept for a week.
          </Empty>
        }
      >
        {(requests) => (
          <DataTable
            label="Slow requests"
            minWidth={820}
            verticalSpacing={4}
            items={requests}
            keyOf={({ requestId }) => requestId}
            columns={[
              {
                title: "Request",
                maxWidth: 360,
                show: (request) => <RequestPath request={request} />,
              },
              { title: "When", show: ({ at }) => <Ago time={at} /> },
              { title: "Took", isNumber: true, show: ({ ms }) => millisText(ms) },
              { title: "Rules", isNumber: true, show: ({ phases }) => millisText(phases.rules) },
              { title: "Database", isNumber: true, show: ({ phases }) => millisText(phases.database) },
              { title: "Hooks", isNumber: true, show: ({ phases }) => millisText(phases.hooks) },
              { title: "Answer", isNumber: true, show: ({ phases }) => millisText(phases.answer) },
              { title: "Records", isNumber: true, show: ({ rows }) => numberText(rows) },
            ]}
          />
        )}
      </Paged>
    </Section>
  );
}

/** Numeric column of a table with fixed widths. */
const NUMBER = { isNumber: true, width: 92 };

/** Requests by endpoint and resource. */
function Targets({ range }: { range: Range }) {
  const report = useQuery({
    queryKey: ["analytics", "targets", range],
    queryFn: () => server.analytics.targets({ range }),
  });
  return (
    <Section title="Endpoints">
      <Loadable query={report}>
        {(targets) =>
          targets.length === 0 ? (
            <Empty title="No requests">None has been recorded in this time.</Empty>
          ) : (
            <DataTable
              label="Endpoints"
              minWidth={900}
              verticalSpacing={4}
              highlightOnHover
              layout="fixed"
              items={targets}
              keyOf={({ method, route, target }) => `${method} ${route} ${target}`}
              columns={[
                {
                  title: "Endpoint",
                  font: "monospace",
                  className: "wrapped",
                  show: ({ method, route }) => `${method} ${route}`,
                },
                { title: "Target", width: "22%", className: "wrapped", show: ({ target }) => target },
                { title: "Requests", ...NUMBER, show: ({ requests }) => numberText(requests) },
                { title: "4xx", ...NUMBER, show: ({ errors4xx }) => numberText(errors4xx) },
                { title: "5xx", ...NUMBER, show: ({ errors5xx }) => numberText(errors5xx) },
                { title: "p50", ...NUMBER, show: ({ p50 }) => millisText(p50) },
                { title: "p95", ...NUMBER, show: ({ p95 }) => millisText(p95) },
                { title: "p99", ...NUMBER, show: ({ p99 }) => millisText(p99) },
              ]}
            />
          )
        }
      </Loadable>
    </Section>
  );
}
