import { SegmentedControl, SimpleGrid, Stack, Table, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReportRange, RequestTarget, SlowRequest } from "../../../../client/admin/index.ts";
import { server } from "../../api/server.ts";
import { usePageState } from "../../parts/address.ts";
import { millisText, numberText } from "../../parts/format.ts";
import { Page } from "../../parts/page.tsx";
import { Paged, usePaged } from "../../parts/paged.tsx";
import { Empty, Loadable } from "../../parts/states.tsx";
import { Ago } from "../../parts/time.tsx";
import { Wide } from "../../parts/wide.tsx";

const RANGES = ["1h", "6h", "24h", "7d", "30d"] as const;
type Range = NonNullable<ReportRange["range"]>;
const SLOW_PAGE = 25;

/** Requests by endpoint and table, with how long they took, and each slow one with what it waited for. */
export default function AnalyticsPage() {
  const { state, change } = usePageState<{ range: Range }>();
  const { range = "24h" } = state;
  return (
    <Page
      title="Analytics"
      actions={
        <SegmentedControl
          aria-label="Range"
          data={[...RANGES]}
          value={range}
          onChange={(next) => change({ range: RANGES.find((one) => one === next) })}
        />
      }
    >
      <Figures range={range} />
      <Targets range={range} />
      <SlowRequests />
    </Page>
  );
}

function Figures({ range }: { range: Range }) {
  const report = useQuery({
    queryKey: ["analytics", "requests", range],
    queryFn: () => server.analytics.requests({ range }),
  });
  return (
    <Loadable query={report} rows={2}>
      {({ summary }) => (
        <SimpleGrid cols={{ base: 2, sm: 3, lg: 6 }}>
          <Figure name="Requests" text={numberText(summary.totalRequests)} />
          <Figure name="Users" text={numberText(summary.uniqueUsers)} />
          <Figure name="Refused (4xx)" text={numberText(summary.errors4xx)} />
          <Figure name="Failed (5xx)" text={numberText(summary.totalErrors)} />
          <Figure name="Median" text={millisText(summary.p50)} />
          <Figure name="99 of 100 within" text={millisText(summary.p99)} />
        </SimpleGrid>
      )}
    </Loadable>
  );
}

function Figure({ name, text }: { name: string; text: string }) {
  return (
    <Stack gap={0}>
      <Text size="sm" c="dimmed">
        {name}
      </Text>
      <Text size="xl" fw={600} className="number">
        {text}
      </Text>
    </Stack>
  );
}

function Targets({ range }: { range: Range }) {
  const report = useQuery({
    queryKey: ["analytics", "targets", range],
    queryFn: () => server.analytics.targets({ range }),
  });
  return (
    <section aria-label="Endpoints">
      <Title order={2} size="h5" mb="xs">
        Endpoints
      </Title>
      <Loadable query={report}>
        {(targets) =>
          targets.length === 0 ? (
            <Empty title="No requests">None has been recorded in this time.</Empty>
          ) : (
            <Wide minWidth={820}>
              <Table verticalSpacing={4} highlightOnHover>
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>Endpoint</Table.Th>
                    <Table.Th>Target</Table.Th>
                    <Table.Th ta="right">Requests</Table.Th>
                    <Table.Th ta="right">4xx</Table.Th>
                    <Table.Th ta="right">5xx</Table.Th>
                    <Table.Th ta="right">p50</Table.Th>
                    <Table.Th ta="right">p95</Table.Th>
                    <Table.Th ta="right">p99</Table.Th>
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
    </section>
  );
}

function TargetLine({
  target: { method, route, target, requests, errors4xx, errors5xx, p50, p95, p99 },
}: {
  target: RequestTarget;
}) {
  return (
    <Table.Tr>
      <Table.Td ff="monospace">
        {method} {route}
      </Table.Td>
      <Table.Td>{target}</Table.Td>
      <Amount text={numberText(requests)} />
      <Amount text={numberText(errors4xx)} />
      <Amount text={numberText(errors5xx)} />
      <Amount text={millisText(p50)} />
      <Amount text={millisText(p95)} />
      <Amount text={millisText(p99)} />
    </Table.Tr>
  );
}

const Amount = ({ text }: { text: string }) => (
  <Table.Td ta="right" className="number">
    {text}
  </Table.Td>
);

function SlowRequests() {
  const list = usePaged({
    queryKey: ["analytics", "slow"],
    load: (cursor) => server.analytics.slowRequests({ limit: SLOW_PAGE, cursor }),
  });
  return (
    <section aria-label="Slow requests">
      <Title order={2} size="h5" mb="xs">
        Slow requests
      </Title>
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
    </section>
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
