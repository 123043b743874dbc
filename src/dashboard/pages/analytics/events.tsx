import { Anchor, CloseButton, Code, Group, SimpleGrid, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { server } from "../../api/server.ts";
import { Chart } from "../../parts/chart/chart.tsx";
import { numberText, timeText } from "../../parts/format.tsx";
import { DataTable } from "../../parts/list/data-table.tsx";
import { Paged, usePaged } from "../../parts/list/list.tsx";
import { Section, usePageState } from "../../parts/page.tsx";
import { Empty, Loadable } from "../../parts/states.tsx";
import { Funnel, type FunnelState } from "./funnel.tsx";
import { type Range, STEPS } from "./ranges.ts";

const PAGE = 50;
const TOP = 20;

export interface EventState extends FunnelState {
  /** Name of the events shown. */
  event: string;
}

/** Tracked events: how often, by whom, and each one with its properties. */
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
            <DataTable
              label="Most frequent events"
              minWidth={300}
              verticalSpacing={4}
              items={events}
              keyOf={({ eventName }) => eventName}
              columns={[
                {
                  title: "Event",
                  maxWidth: 260,
                  show: ({ eventName }) => (
                    <Anchor component="button" size="sm" maw="100%" truncate onClick={() => onChoose(eventName)}>
                      {eventName}
                    </Anchor>
                  ),
                },
                { title: "Times", isNumber: true, show: ({ count }) => numberText(count) },
                { title: "Users", isNumber: true, show: ({ uniqueUsers }) => numberText(uniqueUsers) },
              ]}
            />
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
          <DataTable
            label="Events"
            minWidth={720}
            verticalSpacing={4}
            items={events}
            keyOf={({ id }) => id}
            columns={[
              { title: "Time", width: 190, className: "number", show: ({ timestamp }) => timeText(timestamp) },
              {
                title: "Event",
                width: 180,
                maxWidth: 180,
                show: ({ eventName }) => (
                  <Text size="sm" truncate title={eventName}>
                    {eventName}
                  </Text>
                ),
              },
              { title: "User", width: 150, maxWidth: 150, show: ({ userId }) => <User id={userId} /> },
              {
                title: "Properties",
                show: ({ properties }) => <Code className="wrapped">{JSON.stringify(properties)}</Code>,
              },
            ]}
          />
        )}
      </Paged>
    </Section>
  );
}

function User({ id }: { id: string | null }) {
  if (id === null) {
    return (
      <Text size="sm" c="dimmed">
        nobody
      </Text>
    );
  }
  return (
    <Anchor component={Link} to={`/users/${encodeURIComponent(id)}`}>
      <Text size="sm" ff="monospace" truncate>
        {id}
      </Text>
    </Anchor>
  );
}
