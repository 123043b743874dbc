import { Badge, Code, Group, SimpleGrid, Stack, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type Resources, useResources } from "../../api/resources.ts";
import { server } from "../../api/server.ts";
import { Ago, bytesText, numberText, timeText } from "../../parts/format.tsx";
import { Json } from "../../parts/json.tsx";
import { Wide } from "../../parts/list/list.tsx";
import { Section } from "../../parts/page.tsx";
import { Empty, Loadable } from "../../parts/states.tsx";

/** Running config: keys with their scopes, schedules, quotas, rules with their sources, and the rest without secrets. */
export function Config() {
  const resources = useResources();
  return (
    <Loadable query={resources}>
      {(found) => (
        <Stack gap="md">
          <SimpleGrid cols={{ base: 1, md: 2 }}>
            <Keys keys={found.serviceKeys} />
            <Stack gap="md">
              <Schedules cron={found.cron} />
              <Quotas quotas={found.quotas} />
            </Stack>
          </SimpleGrid>
          <Rules rules={found.rules} />
          <WholeConfig />
        </Stack>
      )}
    </Loadable>
  );
}

function WholeConfig() {
  const config = useQuery({
    queryKey: ["config"],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: () => server.request("GET", "/api/admin/config"),
  });
  return (
    <Section title="The config as it runs">
      <Text size="sm" c="dimmed" mb="xs">
        Texts that may be secrets are hidden, and code is named only.
      </Text>
      <Loadable query={config}>{(found) => <Json value={found} />}</Loadable>
    </Section>
  );
}

function Quotas({ quotas }: { quotas: Resources["quotas"] }) {
  const bytes = (amount: number | null): string => (amount === null ? "any" : bytesText(amount));
  const count = (amount: number | null): string => (amount === null ? "any number of" : numberText(amount));
  const lines = [
    ...Object.entries(quotas.buckets).map(
      ([name, { total, perUser }]) => `Bucket ${name}: ${bytes(total)} in all, ${bytes(perUser)} for each user`,
    ),
    ...Object.entries(quotas.namespaces).map(
      ([name, { perInstance, instancesPerUser }]) =>
        `Namespace ${name}: ${bytes(perInstance)} in each instance, ${count(instancesPerUser)} instances of each user`,
    ),
  ];
  return (
    <Section title="Quotas">
      {lines.length === 0 ? (
        <Text size="sm" c="dimmed">
          None.
        </Text>
      ) : (
        <ul className="plain-list lines">
          {lines.map((line) => (
            <Text component="li" key={line} size="sm" py={4}>
              {line}
            </Text>
          ))}
        </ul>
      )}
    </Section>
  );
}

function Keys({ keys }: { keys: Resources["serviceKeys"] }) {
  return (
    <Section title="Service keys">
      {keys.length === 0 ? (
        <Text size="sm" c="dimmed">
          Only the root key. Declare keys with fewer rights under <code>serviceKeys</code>.
        </Text>
      ) : (
        <Stack gap="xs">
          {keys.map(({ name, scopes, expiresAt, ips, lastUsedAt }) => (
            <div key={name}>
              <Text size="sm" fw={600}>
                {name}
              </Text>
              <Group gap={4}>
                {(scopes ?? ["every right"]).map((scope) => (
                  <Badge key={scope} variant="default" tt="none" ff="monospace">
                    {scope}
                  </Badge>
                ))}
              </Group>
              <Text size="xs" c="dimmed" component="div">
                {expiresAt === null ? null : <>Until {timeText(expiresAt)}. </>}
                {ips === null ? null : <>From {ips.join(", ")}. </>}
                {lastUsedAt === null ? (
                  "Not used since the start of the server."
                ) : (
                  <>
                    Last used <Ago time={lastUsedAt} />.
                  </>
                )}
              </Text>
            </div>
          ))}
        </Stack>
      )}
    </Section>
  );
}

function Schedules({ cron }: { cron: Resources["cron"] }) {
  return (
    <Section title="Schedules">
      {cron.length === 0 ? (
        <Text size="sm" c="dimmed">
          None. Declare code that runs at times under <code>cron</code>.
        </Text>
      ) : (
        <Table>
          <Table.Tbody>
            {cron.map(({ name, schedule, timezone }) => (
              <Table.Tr key={name}>
                <Table.Td>{name}</Table.Td>
                <Table.Td>
                  <Code>{schedule}</Code>
                </Table.Td>
                <Table.Td c="dimmed">{timezone ?? "UTC"}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </Section>
  );
}

function Rules({ rules }: { rules: Resources["rules"] }) {
  const tables = Object.entries(rules).flatMap(([namespace, own]) =>
    Object.entries(own).map(([table, actions]) => ({
      name: `${namespace} / ${table}`,
      actions: Object.entries(actions),
    })),
  );
  if (tables.length === 0) return <Empty title="No rules">No table lets anybody in but service keys.</Empty>;
  return (
    <Section title="Rules">
      <Stack gap="md">
        {tables.map(({ name, actions }) => (
          <div key={name}>
            <Text size="sm" fw={600}>
              {name}
            </Text>
            {actions.length === 0 ? (
              <Text size="sm" c="dimmed">
                Service keys alone
              </Text>
            ) : (
              <Wide minWidth={480}>
                <Table verticalSpacing={4}>
                  <Table.Tbody>
                    {actions.map(([action, source]) => (
                      <Table.Tr key={action}>
                        <Table.Td w={90}>{action}</Table.Td>
                        <Table.Td>
                          <Code block>{source}</Code>
                        </Table.Td>
                      </Table.Tr>
                    ))}
                  </Table.Tbody>
                </Table>
              </Wide>
            )}
          </div>
        ))}
      </Stack>
    </Section>
  );
}
