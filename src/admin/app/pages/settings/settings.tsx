import { Anchor, Badge, Card, Code, Group, SimpleGrid, Stack, Table, Text, Title } from "@mantine/core";
import { type Resources, useResources } from "../../api/resources.ts";
import { Page } from "../../parts/page.tsx";
import { Empty, Loadable } from "../../parts/states.tsx";
import { Wide } from "../../parts/wide.tsx";

/** The config as it runs: keys with their scopes, rules with their sources, schedules. */
export default function SettingsPage() {
  const resources = useResources();
  return (
    <Page
      title="Settings"
      hint="What platform.config.ts declares. It is changed there, and counts from the next start."
    >
      <Loadable query={resources}>
        {(found) => (
          <Stack gap="md">
            <SimpleGrid cols={{ base: 1, md: 2 }}>
              <Keys keys={found.serviceKeys} />
              <Schedules cron={found.cron} />
            </SimpleGrid>
            <Rules rules={found.rules} />
            <Text size="sm">
              <Anchor href="/swagger" underline="always">
                The API
              </Anchor>
              , with every endpoint of this server.
            </Text>
          </Stack>
        )}
      </Loadable>
    </Page>
  );
}

function Keys({ keys }: { keys: Resources["serviceKeys"] }) {
  return (
    <Card withBorder component="section" aria-label="Service keys">
      <Title order={2} size="h5" mb="xs">
        Service keys
      </Title>
      {keys.length === 0 ? (
        <Text size="sm" c="dimmed">
          Only the root key. Declare keys with fewer rights under <code>serviceKeys</code>.
        </Text>
      ) : (
        <Stack gap="xs">
          {keys.map(({ name, scopes, expiresAt, ips }) => (
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
              <Text size="xs" c="dimmed">
                {[expiresAt === null ? null : `until ${expiresAt}`, ips === null ? null : `from ${ips.join(", ")}`]
                  .filter((part) => part !== null)
                  .join(", ")}
              </Text>
            </div>
          ))}
        </Stack>
      )}
    </Card>
  );
}

function Schedules({ cron }: { cron: Resources["cron"] }) {
  return (
    <Card withBorder component="section" aria-label="Schedules">
      <Title order={2} size="h5" mb="xs">
        Schedules
      </Title>
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
    </Card>
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
    <Card withBorder component="section" aria-label="Rules">
      <Title order={2} size="h5" mb="xs">
        Rules
      </Title>
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
    </Card>
  );
}
