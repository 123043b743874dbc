import { Anchor, CloseButton, Code, Group, SimpleGrid, Stack, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { server } from "../../api/server.ts";
import { Chart } from "../../parts/chart/chart.tsx";
import { numberText, timeText } from "../../parts/format.tsx";
import { Paged, usePaged, Wide } from "../../parts/list/list.tsx";
import { Section, usePageState } from "../../parts/page.tsx";
import { Empty, Loadable } from "../../parts/states.tsx";
import { Funnel, type FunnelState } from "./funnel.tsx";
import { Amount, type Range, STEPS } from "./ranges.tsx";

const PAGE = 50;
const TOP = 20;

export interface EventState extends FunnelState {
  /** The name of the events that are shown. */
  event: string;
}

/** What apps track: how often, by whom, and each event with its properties. */
export function Events({ range }: { range: Range }) {
  const { state, change } = usePageState<EventState>();
  const { event } = state;
  return (
    <Stack gap="md">
      <SimpleGrid cols={{ base: 1, lg: 2 }}>
        <EventChart range={range} event={event} />
        <TopEvents range={range} onChoose={(name) => change({ event: name })} />
      </SimpleGrid>
      <Funnel range={range} />
      {event === undefined ? null : (
        <Group gap={4}>
          <Text size="sm">
            Only <Code>{event}</Code>
          </Text>
          <CloseButton size="sm" aria-label="All events" onClick={() => change({ event: undefined })} />
        </Group>
      )}
      <EventList range={range} event={event} />
    </Stack>
  );
}

interface Chosen {
  range: Range;
  event: string | undefined;
}

const filterOf = ({ range, event }: Chosen) => ({ range, ...(event === undefined ? {} : { event }) });

function EventChart(chosen: Chosen) {
  const { range, event = "All events" } = chosen;
  const { groupBy, hint } = STEPS[range];
  const series = useQuery({
    queryKey: ["analytics", "event series", chosen],
    queryFn: () => server.analytics.eventSeries({ ...filterOf(chosen), groupBy }),
  });
  const points = series.data;
  const data = useMemo(
    () =>
      points === undefined
        ? null
        : {
            title: "Events",
            times: points.map(({ timestamp }) => timestamp),
            format: numberText,
            least: 4,
            series: [{ name: event, colour: "blue", values: points.map(({ count }) => count) }] as const,
          },
    [points, event],
  );
  return <Loadable query={series}>{() => (data === null ? null : <Chart data={data} hint={hint} />)}</Loadable>;
}

function TopEvents({ range, onChoose }: { range: Range; onChoose(event: string): void }) {
  const top = useQuery({
    queryKey: ["analytics", "top events", range],
    queryFn: () => server.analytics.topEvents({ range, limit: TOP }),
  });
  return (
    <Section title="Most frequent">
      <Loadable query={top}>
        {(events) =>
          events.length === 0 ? (
            <Text size="sm" c="dimmed">
              None in this time.
            </Text>
          ) : (
            <Wide minWidth={300}>
              <Table verticalSpacing={4}>
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>Event</Table.Th>
                    <Table.Th ta="right">Times</Table.Th>
                    <Table.Th ta="right">Users</Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {events.map(({ eventName, count, uniqueUsers }) => (
                    <Table.Tr key={eventName}>
                      <Table.Td maw={260}>
                        <Anchor component="button" size="sm" maw="100%" truncate onClick={() => onChoose(eventName)}>
                          {eventName}
                        </Anchor>
                      </Table.Td>
                      <Amount text={numberText(count)} />
                      <Amount text={numberText(uniqueUsers)} />
                    </Table.Tr>
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

function EventList(chosen: Chosen) {
  const list = usePaged({
    queryKey: ["analytics", "events", chosen],
    load: (cursor) => server.analytics.events({ ...filterOf(chosen), limit: PAGE, cursor }),
  });
  return (
    <Section title="Events, newest first">
      <Paged
        list={list}
        empty={
          <Empty title="No events">
            Apps send them with <code>client.analytics.track(name, properties)</code>.
          </Empty>
        }
      >
        {(events) => (
          <Wide minWidth={720}>
            <Table verticalSpacing={4}>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th w={190}>Time</Table.Th>
                  <Table.Th w={180}>Event</Table.Th>
                  <Table.Th w={150}>User</Table.Th>
                  <Table.Th>Properties</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {events.map(({ id, timestamp, eventName, userId, properties }) => (
                  <Table.Tr key={id}>
                    <Table.Td className="number">{timeText(timestamp)}</Table.Td>
                    <Table.Td maw={180}>
                      <Text size="sm" truncate title={eventName}>
                        {eventName}
                      </Text>
                    </Table.Td>
                    <Table.Td maw={150}>
                      {userId === null ? (
                        <Text size="sm" c="dimmed">
                          nobody
                        </Text>
                      ) : (
                        <Anchor component={Link} to={`/users/${encodeURIComponent(userId)}`}>
                          <Text size="sm" ff="monospace" truncate>
                            {userId}
                          </Text>
                        </Anchor>
                      )}
                    </Table.Td>
                    <Table.Td>
                      <Code className="wrapped">{JSON.stringify(properties)}</Code>
                    </Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </Wide>
        )}
      </Paged>
    </Section>
  );
}
