import { Badge, Card, Group, SimpleGrid, Table, Text, Title } from "@mantine/core";
import { IconAlertTriangle, IconCircleCheck } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { server } from "../../api/server.ts";
import { useRights } from "../../api/session.tsx";
import { HEALTH_EVERY_MS } from "../../limits.ts";
import { agoText, bytesText, numberText } from "../../parts/format.ts";
import { Page } from "../../parts/page.tsx";
import { Loadable } from "../../parts/states.tsx";

interface Health {
  status: string;
  version: string;
  /** Seconds. */
  uptime: number;
  drill?: boolean;
  checks?: Readonly<Record<string, { ok: boolean } & Readonly<Record<string, unknown>>>>;
}

/** Whether the server is well, and what each of its parts says. */
export default function OverviewPage() {
  const { may } = useRights();
  const isFull = may("system", "*", "*", "read");
  const health = useQuery({
    queryKey: ["health", isFull],
    refetchInterval: HEALTH_EVERY_MS,
    queryFn: () => server.request<Health>("GET", isFull ? "/api/health?full" : "/api/health"),
  });
  return (
    <Page title="Overview">
      <Loadable query={health} rows={3}>
        {({ status, version, uptime, checks = {} }) => (
          <>
            <Group gap="sm">
              <Badge color={status === "ok" ? "green" : "red"} variant="light" size="lg">
                {status}
              </Badge>
              <Text size="sm" c="dimmed">
                Version {version}, started {agoText(Date.now() - uptime * 1000)}
              </Text>
            </Group>
            <SimpleGrid cols={{ base: 1, xs: 2, lg: 3 }}>
              {Object.entries(checks).map(([name, { ok, ...facts }]) => (
                <Check key={name} name={name} isFine={ok} facts={facts} />
              ))}
            </SimpleGrid>
          </>
        )}
      </Loadable>
    </Page>
  );
}

function Check({ name, isFine, facts }: { name: string; isFine: boolean; facts: Readonly<Record<string, unknown>> }) {
  const Icon = isFine ? IconCircleCheck : IconAlertTriangle;
  return (
    <Card withBorder component="section" aria-label={name}>
      <Group justify="space-between" mb="xs">
        <Title order={2} size="h5" tt="capitalize">
          {name}
        </Title>
        <Icon
          size={20}
          color={isFine ? "var(--mantine-color-green-7)" : "var(--mantine-color-red-7)"}
          aria-label={isFine ? "well" : "not well"}
        />
      </Group>
      <Table withRowBorders={false} verticalSpacing={2} horizontalSpacing={0}>
        <Table.Tbody>
          {Object.entries(facts).map(([fact, value]) => (
            <Table.Tr key={fact}>
              <Table.Td c="dimmed">{wordsOf(fact)}</Table.Td>
              <Table.Td ta="right" className="number">
                {factText(fact, value)}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Card>
  );
}

/** `freeBytes` is "free", `lastMs` is "last took". */
const wordsOf = (name: string): string =>
  name
    .replace(/(?:Bytes|At)$/, "")
    .replace(/Ms$/, "Took")
    .replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

function factText(name: string, value: unknown): string {
  if (value === null || value === undefined) return "never";
  if (typeof value === "number") {
    if (/bytes$/i.test(name)) return bytesText(value);
    return name.endsWith("Ms") ? `${numberText(value)} ms` : numberText(value);
  }
  return typeof value === "string" && /(?:At|Until)$/.test(name) ? agoText(value) : String(value);
}
