import { SegmentedControl } from "@mantine/core";
import type { JobState } from "../../../client/admin/index.ts";
import { usePageState } from "../../parts/address.ts";

const STATES: readonly JobState[] = ["waiting", "running", "failed", "done"];

/** The state that lists of jobs are narrowed to; null: every state. It is in the address. */
export function useStateFilter() {
  const { state, change } = usePageState<{ state: JobState }>();
  return { state: STATES.find((one) => one === state.state) ?? null, change };
}

export function StateFilter() {
  const { state, change } = useStateFilter();
  return (
    <SegmentedControl
      aria-label="State"
      w="fit-content"
      data={["all", ...STATES]}
      value={state ?? "all"}
      onChange={(next) => change({ state: STATES.find((one) => one === next) })}
    />
  );
}
