import { Code, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { server } from "../../../api/server.ts";
import { useRights } from "../../../api/session.tsx";
import { Ago, millisText, numberText } from "../../../parts/format.tsx";
import { DataTable } from "../../../parts/list/data-table.tsx";
import { RequestLink } from "../../../parts/name.tsx";
import { Section } from "../../../parts/page.tsx";
import { Empty, Loadable } from "../../../parts/states.tsx";
import type { SlowQuery } from "./model.ts";
import { Proposal } from "./steps.tsx";

/** Slow statements since the start, with the index that would help each; nothing for a key that may not read them. */
export function SlowQueries() {
  const mayRead = useRights().may("system", "*", "*", "read");
  const slow = useQuery({
    queryKey: ["slow-queries"],
    enabled: mayRead,
    queryFn: () => server.request<{ queries: SlowQuery[] }>("GET", "/api/admin/slow-queries"),
  });
  if (!mayRead) return null;
  return (
    <Section title="Slow queries">
      <Loadable query={slow} rows={3}>
        {({ queries }) =>
          queries.length === 0 ? (
            <Empty title="No query was slow">
              Statements of slow requests that took 10 ms or longer are collected here since the start of the server,
              with the index that would help.
            </Empty>
          ) : (
            <DataTable
              label="Slow queries"
              minWidth={820}
              items={queries}
              keyOf={({ place, sql }) => `${place} ${sql}`}
              columns={[
                { title: "Query", show: (query) => <What query={query} /> },
                { title: "Times", isNumber: true, width: 80, show: ({ times }) => numberText(times) },
                { title: "Total", isNumber: true, width: 90, show: ({ ms }) => millisText(ms) },
                { title: "Slowest", isNumber: true, width: 90, show: ({ slowestMs }) => millisText(slowestMs) },
                { title: "Last", width: 130, show: ({ lastAt }) => <Ago time={lastAt} /> },
              ]}
            />
          )
        }
      </Loadable>
    </Section>
  );
}

function What({ query: { sql, place, index, requests } }: { query: SlowQuery }) {
  const [last] = requests;
  return (
    <Stack gap={4} align="flex-start">
      <Code className="wrapped">{sql}</Code>
      <Group gap="xs">
        <Text size="xs" c="dimmed">
          {place}
        </Text>
        {last === undefined ? null : <RequestLink id={last} />}
      </Group>
      {index === null ? null : <Proposal index={index} />}
    </Stack>
  );
}
