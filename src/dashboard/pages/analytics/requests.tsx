import { SimpleGrid, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { RequestPoint } from "../../../client/admin/index.ts";
import { server } from "../../api/server.ts";
import { Chart } from "../../parts/chart/chart.tsx";
import { RequestsChart, ResponseTimesChart } from "../../parts/chart/requests.tsx";
import { millisText, numberText } from "../../parts/format.ts";
import { Loadable } from "../../parts/states.tsx";
import { Figure } from "./figure.tsx";
import { type Range, STEPS } from "./ranges.ts";
import { SlowRequests } from "./slow-requests.tsx";
import { Targets } from "./targets.tsx";

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
      <SlowRequests />
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
