import { Table } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { RequestTarget } from "../../../client/admin/index.ts";
import { server } from "../../api/server.ts";
import { millisText, numberText } from "../../parts/format.ts";
import { Section } from "../../parts/section.tsx";
import { Empty, Loadable } from "../../parts/states.tsx";
import { Wide } from "../../parts/wide.tsx";
import { Amount } from "./amount.tsx";
import type { Range } from "./ranges.ts";

/** Of a column of numbers. */
const WIDTH_PX = 92;

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
