import { Progress, Stack, Table, TagsInput, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { server } from "../../api/server.ts";
import { numberText } from "../../parts/format.tsx";
import { Wide } from "../../parts/list/list.tsx";
import { Section, usePageState } from "../../parts/page.tsx";
import { Loadable } from "../../parts/states.tsx";
import { Amount, type Range } from "./ranges.tsx";

/** Events of a funnel. */
const FUNNEL_STEPS_MIN = 2;
const FUNNEL_STEPS_MAX = 5;

const SUGGESTED = 50;
const WHOLE = 100;

export interface FunnelState {
  /** Names of events, in the order in which users do them. */
  steps: readonly string[];
}

/** How many users go from one event to the next. */
export function Funnel({ range }: { range: Range }) {
  const { state, change } = usePageState<FunnelState>();
  // An address may hold anything.
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
      {(counted) => (
        <Wide minWidth={480}>
          <Table verticalSpacing={4}>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Event</Table.Th>
                <Table.Th w="40%">Of the first</Table.Th>
                <Table.Th ta="right">Users</Table.Th>
                <Table.Th ta="right">Of the step before</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {counted.map(({ eventName, users }, step) => {
                const first = counted[0]?.users ?? 0;
                const before = counted[step - 1]?.users ?? first;
                return (
                  // biome-ignore lint/suspicious/noArrayIndexKey: a step is its place; an event may be several
                  <Table.Tr key={step}>
                    <Table.Td maw={260}>
                      <Text size="sm" truncate title={eventName}>
                        {eventName}
                      </Text>
                    </Table.Td>
                    <Table.Td>
                      <Progress
                        value={share(users, first)}
                        size="lg"
                        aria-label={`${eventName}: ${shareText(users, first)}`}
                      />
                    </Table.Td>
                    <Amount text={numberText(users)} />
                    <Amount text={shareText(users, before)} />
                  </Table.Tr>
                );
              })}
            </Table.Tbody>
          </Table>
        </Wide>
      )}
    </Loadable>
  );
}
