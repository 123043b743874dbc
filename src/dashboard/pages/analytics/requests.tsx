import { SimpleGrid, Stack, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useMemo } from "react";
import type { RequestPoint, RequestTarget, SlowRequest } from "../../../client/admin/index.ts";
import { server } from "../../api/server.ts";
import { Chart, RequestsChart, ResponseTimesChart } from "../../parts/chart/chart.tsx";
import { Ago, millisText, numberText } from "../../parts/format.tsx";
import { Paged, usePaged, Wide } from "../../parts/list/list.tsx";
import { Section } from "../../parts/page.tsx";
import { Empty, Loadable } from "../../parts/states.tsx";
import { Amount, type Range, STEPS } from "./ranges.tsx";

/** A number with its name. */
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

const SLOW_PAGE = 25;

/** Each slow request with what it waited for. */
function SlowRequests() {
  const list = usePaged({
    queryKey: ["analytics", "slow"],
    load: (cursor) => server.analytics.slowRequests({ limit: SLOW_PAGE, cursor }),
  });
  return (
    <Section title="Slow requests">
      <Paged
        list={list}
        rows={3}
        empty={
          <Empty title="None was slow">Requests that take longer than half a second are kept here for a week.</Empty>
        }
      >
        {(requests) => (
          <Wide minWidth={820}>
            <Table verticalSpacing={4}>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>Request</Table.Th>
                  <Table.Th>When</Table.Th>
                  <Table.Th ta="right">Took</Table.Th>
                  <Table.Th ta="right">Rules</Table.Th>
                  <Table.Th ta="right">Database</Table.Th>
                  <Table.Th ta="right">Hooks</Table.Th>
                  <Table.Th ta="right">Answer</Table.Th>
                  <Table.Th ta="right">Records</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {requests.map((request) => (
                  <SlowLine key={request.requestId} request={request} />
                ))}
              </Table.Tbody>
            </Table>
          </Wide>
        )}
      </Paged>
    </Section>
  );
}

function SlowLine({ request: { at, method, path, status, ms, phases, rows } }: { request: SlowRequest }) {
  const { rules, database, hooks, answer } = phases;
  return (
    <Table.Tr>
      <Table.Td maw={360}>
        <Text size="sm" ff="monospace" truncate title={path}>
          {status} {method} {path}
        </Text>
      </Table.Td>
      <Table.Td>
        <Ago time={at} />
      </Table.Td>
      <Amount text={millisText(ms)} />
      <Amount text={millisText(rules)} />
      <Amount text={millisText(database)} />
      <Amount text={millisText(hooks)} />
      <Amount text={millisText(answer)} />
      <Amount text={numberText(rows)} />
    </Table.Tr>
  );
}

/** Of a column of numbers. */
const WIDTH_PX = 92;

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
            <Wide minWidth={900}>
              <Table verticalSpacing={4} highlightOnHover layout="fixed">
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>Endpoint</Table.Th>
                    <Table.Th w="22%">Target</Table.Th>
                    <Table.Th ta="right" w={WIDTH_PX}>
                      Requests
                    </Table.Th>
                    <Table.Th ta="right" w={WIDTH_PX}>
                      4xx
                    </Table.Th>
                    <Table.Th ta="right" w={WIDTH_PX}>
                      5xx
                    </Table.Th>
                    <Table.Th ta="right" w={WIDTH_PX}>
                      p50
                    </Table.Th>
                    <Table.Th ta="right" w={WIDTH_PX}>
                      p95
                    </Table.Th>
                    <Table.Th ta="right" w={WIDTH_PX}>
                      p99
                    </Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {targets.map((target) => (
                    <TargetLine key={`${target.method} ${target.route} ${target.target}`} target={target} />
                  ))}
                </Table.Tbody>
              </Table>
            </Wide>
          )
        }
      </Loadable>
    </Section>
  );
}

function TargetLine({
  target: { method, route, target, requests, errors4xx, errors5xx, p50, p95, p99 },
}: {
  target: RequestTarget;
}) {
  return (
    <Table.Tr>
      <Table.Td ff="monospace" className="wrapped">
        {method} {route}
      </Table.Td>
      <Table.Td className="wrapped">{target}</Table.Td>
      <Amount text={numberText(requests)} />
      <Amount text={numberText(errors4xx)} />
      <Amount text={numberText(errors5xx)} />
      <Amount text={millisText(p50)} />
      <Amount text={millisText(p95)} />
      <Amount text={millisText(p99)} />
    </Table.Tr>
  );
}
