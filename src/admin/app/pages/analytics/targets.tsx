import { Table } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { RequestTarget } from "../../../../client/admin/index.ts";
import { server } from "../../api/server.ts";
import { millisText, numberText } from "../../parts/format.ts";
import { Section } from "../../parts/section.tsx";
import { Empty, Loadable } from "../../parts/states.tsx";
import { Wide } from "../../parts/wide.tsx";
import { Amount } from "./amount.tsx";
import type { Range } from "./ranges.ts";

/** Requests by endpoint and resource. */
export function Targets({ range }: { range: Range }) {
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
