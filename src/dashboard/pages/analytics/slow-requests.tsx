import { Table, Text } from "@mantine/core";
import type { SlowRequest } from "../../../client/admin/index.ts";
import { server } from "../../api/server.ts";
import { millisText, numberText } from "../../parts/format.ts";
import { Paged, usePaged } from "../../parts/list/paged.tsx";
import { Section } from "../../parts/section.tsx";
import { Empty } from "../../parts/states.tsx";
import { Ago } from "../../parts/time.tsx";
import { Wide } from "../../parts/wide.tsx";
import { Amount } from "./amount.tsx";

const SLOW_PAGE = 25;

/** Each slow request with what it waited for. */
export function SlowRequests() {
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
