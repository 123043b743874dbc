import { Progress, Stack, TagsInput, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { server } from "../../api/server.ts";
import { numberText } from "../../parts/format.tsx";
import { DataTable } from "../../parts/list/data-table.tsx";
import { Section, usePageState } from "../../parts/page.tsx";
import { Loadable } from "../../parts/states.tsx";
import type { Range } from "./ranges.ts";

/** Minimum number of events of a funnel. */
const FUNNEL_STEPS_MIN = 2;
const FUNNEL_STEPS_MAX = 5;

const SUGGESTED = 50;
const WHOLE = 100;

export interface FunnelState {
  /** Names of events, in the order of the funnel. */
  steps: readonly string[];
}

/** Number of users that continue from one event to the next. */
export function Funnel({ range }: { range: Range }) {
  const { state, change } = usePageState<FunnelState>();
  // Addresses are untrusted input.
  const steps = Array.isArray(state.steps) ? state.steps.map(String).slice(0, FUNNEL_STEPS_MAX) : [];
  const names = useQuery({
    queryKey: ["analytics", "event names", range],
    queryFn: () => server.analytics.topEvents({ range, limit: SUGGESTED }),
  });
  return (
    <Section title="Funnel">
      <Stack gap="sm">
        <TagsInput
          label="Steps"
          description="Two to five events, in their order"
          placeholder={steps.length === 0 ? "Name of an event" : ""}
          data={(names.data ?? []).map(({ eventName }) => eventName)}
          value={[...steps]}
          maxTags={FUNNEL_STEPS_MAX}
          onChange={(next) => change({ steps: next.length === 0 ? undefined : next })}
          clearable
          clearButtonProps={{ "aria-label": "Remove all steps" }}
        />
        {steps.length < FUNNEL_STEPS_MIN ? null : <Steps range={range} steps={steps} />}
      </Stack>
    </Section>
  );
}

const share = (part: number, whole: number): number => (whole === 0 ? 0 : (part / whole) * WHOLE);
const shareText = (part: number, whole: number): string => `${numberText(Math.round(share(part, whole)))} %`;

function Steps({ range, steps }: { range: Range; steps: readonly string[] }) {
  const funnel = useQuery({
    queryKey: ["analytics", "funnel", range, steps],
    queryFn: () => server.analytics.funnel(steps, { range }),
  });
  return (
    <Loadable query={funnel} rows={steps.length}>
      {(counted) => {
        const first = counted[0]?.users ?? 0;
        return (
          <DataTable
            label="Funnel"
            minWidth={480}
            verticalSpacing={4}
            items={counted}
            // Steps are keyed by position, as an event may occur several times.
            keyOf={(_, step) => step}
            columns={[
              {
                title: "Event",
                maxWidth: 260,
                show: ({ eventName }) => (
                  <Text size="sm" truncate title={eventName}>
                    {eventName}
                  </Text>
                ),
              },
              {
                title: "Of the first",
                width: "40%",
                show: ({ eventName, users }) => (
                  <Progress
                    value={share(users, first)}
                    size="lg"
                    aria-label={`${eventName}: ${shareText(users, first)}`}
                  />
                ),
              },
              { title: "Users", isNumber: true, show: ({ users }) => numberText(users) },
              {
                title: "Of the step before",
                isNumber: true,
                show: ({ users }, step) => shareText(users, counted[step - 1]?.users ?? first),
              },
            ]}
          />
        );
      }}
    </Loadable>
  );
}
