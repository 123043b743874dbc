import { Alert, Badge, Group, Stack, Text } from "@mantine/core";
import { bytesText, millisText, numberText } from "../../parts/format.tsx";
import { DataTable } from "../../parts/list/data-table.tsx";
import { Section } from "../../parts/page.tsx";
import type { Process } from "./health.ts";

/** Node of a cluster. Newer servers may say more. */
interface Node {
  url: string;
  live: boolean;
  role: string;
  lagMs: number | null;
  version: string | null;
  config: string | null;
}

/** `checks.cluster` of the health. */
export interface ClusterFigures {
  ok: boolean;
  role?: string;
  epoch?: number;
  lagMs?: number | null;
  node?: string;
  nodes?: readonly Node[];
  log?: {
    ok: boolean;
    durability?: string;
    bytes?: number | null;
    position?: number | string;
    message?: string | null;
  };
  message?: string | null;
}

const lagText = (lagMs: number | null | undefined): string =>
  lagMs === null || lagMs === undefined ? "unknown" : lagMs === 0 ? "none" : millisText(lagMs);

/** Nodes of a cluster, and how far each is behind the log of commits. */
export function Cluster({ figures }: { figures: ClusterFigures }) {
  const { ok, nodes = [], node, role, epoch, lagMs, log, message } = figures;
  /** Configs of live nodes: all are to have the same. */
  const configs = new Set(nodes.flatMap(({ live, config }) => (live && config !== null ? config : [])));
  return (
    <Section
      title="Cluster"
      actions={
        <Badge color={ok ? "green" : "red"} variant="light">
          {ok ? "works" : "does not work"}
        </Badge>
      }
    >
      <Stack gap="xs">
        <Text size="sm" c="dimmed" className="wrapped">
          This is {node ?? "a node"}, the {role ?? "unknown"}; {numberText(epoch ?? 0)}{" "}
          {epoch === 1 ? "node has" : "times a node has"} become the owner. Behind the log: {lagText(lagMs)}.
        </Text>
        {log === undefined ? null : (
          <Text size="sm" className="wrapped">
            Log of commits: {log.ok ? "takes writes" : "takes no writes"}, at {log.position ?? "an unknown position"}
            {log.bytes === null || log.bytes === undefined ? "" : `, ${bytesText(log.bytes)}`}
            {log.durability === undefined ? "" : `, durability "${log.durability}"`}
          </Text>
        )}
        {[message, log?.message].map((text) =>
          text === null || text === undefined ? null : (
            <Alert key={text} color="red" variant="light" p="xs" className="wrapped">
              {text}
            </Alert>
          ),
        )}
        <DataTable
          label="Nodes"
          minWidth={560}
          verticalSpacing={4}
          items={nodes}
          keyOf={({ url }) => url}
          columns={[
            {
              title: "Node",
              className: "wrapped",
              show: ({ url }) => (
                <Group gap={6}>
                  {url}
                  {url === node ? (
                    <Badge size="sm" variant="light" tt="none">
                      this one
                    </Badge>
                  ) : null}
                </Group>
              ),
            },
            {
              title: "Role",
              show: ({ live, role: of }) =>
                live ? (
                  of
                ) : (
                  <Badge size="sm" variant="light" color="red" tt="none">
                    gone
                  </Badge>
                ),
            },
            { title: "Behind", isNumber: true, show: ({ lagMs: behind }) => lagText(behind) },
            { title: "Version", show: ({ version }) => version ?? "unknown" },
            {
              title: "Config",
              font: "monospace",
              show: ({ config }) => (config === null ? "unknown" : configs.size > 1 ? config.slice(0, 8) : "the same"),
            },
          ]}
        />
      </Stack>
    </Section>
  );
}

/** Processes of a server with workers. */
export function Processes({ processes }: { processes: readonly Process[] }) {
  return (
    <Section title="Processes">
      <DataTable
        label="Processes"
        minWidth={480}
        verticalSpacing={4}
        items={processes}
        keyOf={({ pid }) => pid}
        columns={[
          { title: "Process", show: ({ pid }) => pid },
          { title: "Role", show: ({ role }) => role },
          { title: "Requests", isNumber: true, show: ({ requests }) => numberText(requests) },
          { title: "Memory", isNumber: true, show: ({ memory }) => bytesText(memory) },
          { title: "Loop delay", isNumber: true, show: ({ loopMs }) => millisText(loopMs) },
        ]}
      />
    </Section>
  );
}

/** Figures of the cluster and of the processes, where there are several of either. */
export default function Parts({ processes, cluster }: { processes: readonly Process[]; cluster: unknown }) {
  return (
    <>
      {/* The server answers the check in this form; what it lacks is shown as unknown. */}
      {cluster === undefined ? null : <Cluster figures={cluster as ClusterFigures} />}
      {processes.length > 1 ? <Processes processes={processes} /> : null}
    </>
  );
}
