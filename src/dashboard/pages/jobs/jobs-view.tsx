import { Stack, Text } from "@mantine/core";
import { Json } from "../../parts/json/json.tsx";
import { Empty } from "../../parts/states.tsx";
import { JobList } from "./job-list.tsx";
import { StateFilter, useStateFilter } from "./state-filter.tsx";

/** Every job, with its data and error. */
export function JobsView() {
  const { state } = useStateFilter();
  return (
    <Stack gap="md">
      <StateFilter />
      <JobList
        name={null}
        empty={
          <Empty title={state === null ? "No jobs yet" : `No ${state} jobs`}>
            Jobs are declared under <code>jobs</code> and <code>cron</code>; mail and webhooks are jobs too.
          </Empty>
        }
        detailOf={({ error, data }) => (
          <>
            {error === null ? null : (
              <Text size="sm" c="var(--mantine-color-error)" mb={4} className="wrapped">
                {error}
              </Text>
            )}
            <Json value={data} />
          </>
        )}
      />
    </Stack>
  );
}
