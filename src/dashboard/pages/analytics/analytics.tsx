import { SegmentedControl, Tabs } from "@mantine/core";
import { useRights } from "../../api/session.tsx";
import { Page, usePageState } from "../../parts/page.tsx";
import { type EventState, Events } from "./events.tsx";
import { RANGES, type Range } from "./ranges.ts";
import { Requests } from "./requests.tsx";
import { KeptRequests } from "./story/kept-requests.tsx";

const VIEWS = ["requests", "single", "events"] as const;
type View = (typeof VIEWS)[number];

/** Requests with latencies by endpoint and table, and the events that apps track. */
export default function AnalyticsPage() {
  const { state, change } = usePageState<{ range: Range; view: View } & EventState>();
  const view = VIEWS.find((one) => one === state.view) ?? "requests";
  const maySeeSingle = useRights().may("system", "*", "*", "read");
  const range = RANGES.find((one) => one === state.range) ?? "24h";
  return (
    <Page
      title="Analytics"
      actions={
        // Single requests have a range of their own.
        view === "single" ? undefined : (
          <SegmentedControl
            aria-label="Range"
            data={[...RANGES]}
            value={range}
            onChange={(next) => change({ range: RANGES.find((one) => one === next) })}
          />
        )
      }
    >
      <Tabs
        value={view}
        onChange={(next) => change({ view: VIEWS.find((one) => one === next && one !== "requests") })}
        keepMounted={false}
      >
        <Tabs.List mb="md">
          <Tabs.Tab value="requests">Requests</Tabs.Tab>
          {maySeeSingle ? <Tabs.Tab value="single">Single requests</Tabs.Tab> : null}
          <Tabs.Tab value="events">Events</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="requests">
          <Requests range={range} />
        </Tabs.Panel>
        <Tabs.Panel value="single">
          <KeptRequests />
        </Tabs.Panel>
        <Tabs.Panel value="events">
          <Events range={range} />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}
