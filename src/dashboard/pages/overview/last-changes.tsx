import { Anchor } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { server } from "../../api/server.ts";
import { FIGURES_EVERY_MS } from "../../limits.ts";
import { Section } from "../../parts/section.tsx";
import { Loadable } from "../../parts/states.tsx";
import { EventLines } from "./event-lines.tsx";

const SHOWN = 8;

/** The end of the audit log. */
export function LastChanges() {
  const entries = useQuery({
    queryKey: ["audit", "last"],
    refetchInterval: FIGURES_EVERY_MS,
    queryFn: () => server.audit.list({ limit: SHOWN }),
  });
  return (
    <Section
      title="Last changes"
      actions={
        <Anchor component={Link} to="/audit" size="sm">
          Audit log
        </Anchor>
      }
    >
      <Loadable query={entries} rows={2}>
        {({ items }) => (
          <EventLines
            lines={items.map(({ at, actor, action, target, requestId }) => ({
              key: `${at} ${action} ${target} ${requestId}`,
              name: `${action} by ${actor.name ?? actor.kind}${actor.as === undefined ? "" : ` as ${actor.as}`}`,
              detail: target,
              at,
            }))}
          />
        )}
      </Loadable>
    </Section>
  );
}
