import { Anchor, Code, Group, SimpleGrid, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { server } from "../../../api/server.ts";
import { useRights } from "../../../api/session.tsx";
import { millisText, numberText, Time } from "../../../parts/format.tsx";
import { Json } from "../../../parts/json.tsx";
import { UserName } from "../../../parts/name.tsx";
import { Page, Section, usePathParameters } from "../../../parts/page.tsx";
import { Empty, Loadable } from "../../../parts/states.tsx";
import type { KeptStory, Story } from "./model.ts";
import { Steps } from "./steps.tsx";

/** Story of one request, with the jobs that it enqueued and what the logs have of it. */
export default function RequestPage() {
  const { id } = usePathParameters<"id">();
  const { may } = useRights();
  const mayRead = may("system", "*", "*", "read");
  return (
    <Page
      title="Request"
      hint={
        <Text span inherit ff="monospace" className="wrapped">
          {id}
        </Text>
      }
    >
      {mayRead ? (
        <Kept id={id} />
      ) : (
        <Empty title="This key may not read it">The story of a request needs the scope system:*:*:read.</Empty>
      )}
      {mayRead ? <LogOf id={id} /> : null}
      {may("audit", "*", "*", "read") ? <AuditOf id={id} /> : null}
    </Page>
  );
}

function Kept({ id }: { id: string }) {
  const kept = useQuery({
    queryKey: ["requests", id],
    queryFn: () => server.request<KeptStory>("GET", `/api/admin/requests/${encodeURIComponent(id)}`),
  });
  return (
    <Loadable query={kept}>
      {({ request, jobs }) => (
        <>
          {request === null ? (
            <Empty title="Its story is not kept">
              The server keeps what slow and failed requests did, the newest 1,000 since its start, and under platform
              dev that of all. The log, the audit log and the jobs of this request are below.
            </Empty>
          ) : (
            <Told request={request} />
          )}
          {jobs.length === 0 ? null : (
            <Section title="Jobs">
              <ul className="plain-list">
                {jobs.map((job) => (
                  <li key={job.id}>
                    <Anchor component={Link} to="/jobs" search={{ name: job.name } as never} size="sm">
                      {job.name}
                    </Anchor>{" "}
                    <Text span size="xs" c="dimmed" className="wrapped">
                      {job.id}
                    </Text>
                  </li>
                ))}
              </ul>
            </Section>
          )}
        </>
      )}
    </Loadable>
  );
}

function Told({ request }: { request: Story }) {
  const { at, method, path, status, ms, phases, rows, principal, steps, further } = request;
  const facts: readonly (readonly [name: string, value: ReactNode])[] = [
    ["Took", millisText(ms)],
    ["Rules", millisText(phases.rules)],
    ["Database", millisText(phases.database)],
    ["Hooks", millisText(phases.hooks)],
    ["Answer", millisText(phases.answer)],
    ["Records", numberText(rows)],
  ];
  return (
    <>
      <Stack gap={4}>
        <Text ff="monospace" className="wrapped">
          {status} {method} {path}
        </Text>
        <Group gap="xs">
          <Text size="sm" c="dimmed">
            <Time time={at} />, by {principal.kind === "serviceKey" ? `the key ${principal.name}` : principal.kind}
          </Text>
          {principal.kind === "user" && principal.name !== null ? <UserName id={principal.name} /> : null}
        </Group>
      </Stack>
      <SimpleGrid cols={{ base: 2, sm: 3, lg: 6 }}>
        {facts.map(([name, value]) => (
          <div key={name}>
            <Text size="sm" c="dimmed">
              {name}
            </Text>
            <Text size="lg" fw={600} className="number">
              {value}
            </Text>
          </div>
        ))}
      </SimpleGrid>
      <Section title="What it did">
        {steps.length === 0 ? (
          <Text size="sm">It asked no rule and no database.</Text>
        ) : (
          <Steps steps={steps} ms={ms} further={further} />
        )}
      </Section>
    </>
  );
}

function LogOf({ id }: { id: string }) {
  const lines = useQuery({
    queryKey: ["requests", id, "log"],
    queryFn: () =>
      server.request<{ lines: { at: string; message: string; facts: object | null }[] }>("GET", "/api/admin/logs", {
        query: { q: id, limit: 50 },
      }),
  });
  return (
    <Section title="Log">
      <Loadable query={lines} rows={2}>
        {({ lines: found }) =>
          found.length === 0 ? (
            <Text size="sm">The log has no line with this id.</Text>
          ) : (
            <ul className="plain-list">
              {found.map(({ at, message, facts }) => (
                <li key={`${at} ${message}`}>
                  <Text size="xs" c="dimmed">
                    <Time time={at} />
                  </Text>
                  <Text size="sm">{message}</Text>
                  {facts === null ? null : <Code className="wrapped">{JSON.stringify(facts)}</Code>}
                </li>
              ))}
            </ul>
          )
        }
      </Loadable>
    </Section>
  );
}

function AuditOf({ id }: { id: string }) {
  const entries = useQuery({
    queryKey: ["requests", id, "audit"],
    queryFn: () => server.audit.list({ request: id, limit: 50 }),
  });
  return (
    <Section title="Audit">
      <Loadable query={entries} rows={2}>
        {({ items }) =>
          items.length === 0 ? (
            <Text size="sm">The audit log has no entry of this request.</Text>
          ) : (
            <ul className="plain-list">
              {items.map(({ at, action, target, before, after }) => (
                <li key={`${at} ${action} ${target}`}>
                  <Text size="sm" className="wrapped">
                    {action} {target}
                  </Text>
                  <Json value={{ before, after }} />
                </li>
              ))}
            </ul>
          )
        }
      </Loadable>
    </Section>
  );
}
