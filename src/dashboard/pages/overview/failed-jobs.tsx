import { Anchor } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { server } from "../../api/server.ts";
import { FIGURES_EVERY_MS } from "../../limits.ts";
import { Section } from "../../parts/section.tsx";
import { Loadable } from "../../parts/states.tsx";
import { EventLines } from "./event-lines.tsx";

const SHOWN = 6;
const FAILED = { state: "failed" };

export function FailedJobs() {
  const jobs = useQuery({
    queryKey: ["jobs", "failed last"],
    refetchInterval: FIGURES_EVERY_MS,
    queryFn: () => server.jobs.list({ state: "failed", limit: SHOWN }),
  });
  return (
    <Section
      title="Jobs that failed"
      actions={
        <Anchor component={Link} to="/jobs" search={FAILED as never} size="sm">
          All failed jobs
        </Anchor>
      }
    >
      <Loadable query={jobs} rows={2}>
        {({ items }) => (
          <EventLines
            lines={items.map(({ id, name, error, finishedAt }) => ({
              key: id,
              name,
              detail: error ?? "",
              at: finishedAt,
            }))}
          />
        )}
      </Loadable>
    </Section>
  );
}
