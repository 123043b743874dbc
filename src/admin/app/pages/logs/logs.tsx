import { Badge, Code, Group, SegmentedControl, Table, Text, TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { server } from "../../api/server.ts";
import { LOGS_EVERY_MS } from "../../limits.ts";
import { usePageState } from "../../parts/address.ts";
import { timeText } from "../../parts/format.ts";
import { Page } from "../../parts/page.tsx";
import { Empty, Loadable } from "../../parts/states.tsx";
import { Wide } from "../../parts/wide.tsx";

type Level = "info" | "warn" | "error";

interface Line {
  at: string;
  level: Level;
  message: string;
  facts: object | null;
}

const LINES = 300;
const COLOURS: Readonly<Record<Level, string>> = { info: "blue", warn: "yellow", error: "red" };

/** The last lines of the server's log, the newest first. */
export default function LogsPage() {
  const { state, change } = usePageState<{ level: Level; q: string }>();
  const { level = "info", q = "" } = state;
  const logs = useQuery({
    queryKey: ["logs", level, q],
    refetchInterval: LOGS_EVERY_MS,
    queryFn: () =>
      server.request<{ lines: Line[] }>("GET", "/api/admin/logs", {
        query: { level, limit: LINES, q: q === "" ? null : q },
      }),
  });
  return (
    <Page title="Logs">
      <Group gap="xs">
        <SegmentedControl
          aria-label="Level"
          data={["info", "warn", "error"]}
          value={level}
          // The options are levels.
          onChange={(next) => change({ level: next as Level })}
        />
        <TextInput
          aria-label="Search"
          placeholder="A part of a line"
          leftSection={<IconSearch size={16} aria-hidden />}
          w={280}
          defaultValue={q}
          onChange={(event) => change({ q: event.currentTarget.value || undefined }, { replace: true })}
        />
      </Group>
      <Loadable query={logs} rows={10}>
        {({ lines }) =>
          lines.length === 0 ? (
            <Empty title="No lines">Nothing of this level has been logged since the start.</Empty>
          ) : (
            <Wide minWidth={640}>
              <Table verticalSpacing={4} aria-label="Log">
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th w={190}>Time</Table.Th>
                    <Table.Th w={80}>Level</Table.Th>
                    <Table.Th>Message</Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {lines.map((line) => (
                    <Table.Tr key={`${line.at} ${line.message} ${JSON.stringify(line.facts)}`}>
                      <Table.Td className="number">{timeText(line.at)}</Table.Td>
                      <Table.Td>
                        <Badge size="sm" variant="light" color={COLOURS[line.level]}>
                          {line.level}
                        </Badge>
                      </Table.Td>
                      <Table.Td>
                        <Text size="sm">{line.message}</Text>
                        {line.facts === null ? null : <Code>{JSON.stringify(line.facts)}</Code>}
                      </Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            </Wide>
          )
        }
      </Loadable>
    </Page>
  );
}
