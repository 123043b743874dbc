import { SegmentedControl, Tabs } from "@mantine/core";
import { Page, usePageState } from "../../parts/page.tsx";
import { type EventState, Events } from "./events.tsx";
import { RANGES, type Range } from "./ranges.ts";
import { Requests } from "./requests.tsx";

type View = "requests" | "events";

/** Requests with latencies by endpoint and table, and the events that apps track. */
export default function AnalyticsPage() {
  const { state, change } = usePageState<{ range: Range; view: View } & EventState>();
  const view = state.view === "events" ? "events" : "requests";
  const range = RANGES.find((one) => one === state.range) ?? "24h";
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
      <Tabs
        value={view}
        onChange={(next) => change({ view: next === "events" ? "events" : undefined })}
        keepMounted={false}
      >
        <Tabs.List mb="md">
          <Tabs.Tab value="requests">Requests</Tabs.Tab>
          <Tabs.Tab value="events">Events</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="requests">
          <Requests range={range} />
        </Tabs.Panel>
        <Tabs.Panel value="events">
          <Events range={range} />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}
