import { Anchor, Badge, Card, Group, SimpleGrid, Stack, Table, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type Resources, useResources } from "../../api/resources.ts";
import { numberText } from "../../parts/format.tsx";
import { Page } from "../../parts/page.tsx";
import { Empty, Loadable } from "../../parts/states.tsx";
import { useServer, useViewAs } from "../../shell/view-as.tsx";
import { pageOf, pathOf, type TableAddress } from "./address.ts";
import { NewAction } from "./edit/actions.tsx";
import { type Source, useSource } from "./edit/source.ts";
import { PutBack, Undo } from "./edit/undo.tsx";
import { prefetchRows } from "./rows.ts";

/** All namespaces with their tables. */
export default function TablesPage() {
  const schema = useResources();
  const source = useSource();
  return (
    <Page
      title="Tables"
      actions={
        source === null ? undefined : (
          <>
            <Undo source={source} />
            <NewAction kind="namespace" source={source} />
            <NewAction kind="bucket" source={source} />
          </>
        )
      }
    >
      {source === null ? null : <PutBack source={source} />}
      <Loadable query={schema}>
        {({ namespaces }) =>
          Object.keys(namespaces).length === 0 ? (
            <Empty title="No tables are declared">
              Declare some under <code>databases</code> in platform.config.ts.
            </Empty>
          ) : (
            <SimpleGrid cols={{ base: 1, md: 2 }}>
              {Object.entries(namespaces).map(([name, namespace]) => (
                <NamespaceCard key={name} name={name} namespace={namespace} source={source} />
              ))}
            </SimpleGrid>
          )
        }
      </Loadable>
    </Page>
  );
}

function NamespaceCard({
  name,
  namespace,
  source,
}: {
  name: string;
  namespace: Resources["namespaces"][string];
  /** The config where it can be edited. */
  source: Source | null;
}) {
  const names = Object.keys(namespace.tables);
  return (
    <Card withBorder component="section" aria-label={name}>
      <Stack gap="xs">
        <Group justify="space-between">
          <Title order={2} size="h5">
            {name}
          </Title>
          <Group gap="xs">
            {namespace.instance ? <Badge variant="light">One file per instance</Badge> : null}
            {source === null ? null : <NewAction kind="table" source={source} namespace={name} variant="subtle" />}
          </Group>
        </Group>
        {namespace.instance ? (
          <Text size="sm">
            <Anchor component={Link} underline="always" to={`/tables/${encodeURIComponent(name)}`}>
              Instances
            </Anchor>{" "}
            with {names.join(", ")}
          </Text>
        ) : (
          <Table layout="fixed">
            <Table.Tbody>
              {names.map((table) => (
                <TableLine key={table} address={{ namespace: name, instance: null, table }} />
              ))}
            </Table.Tbody>
          </Table>
        )}
      </Stack>
    </Card>
  );
}

function TableLine({ address }: { address: TableAddress }) {
  const server = useServer();
  const as = useViewAs();
  const count = useQuery({
    queryKey: ["count", address, as],
    queryFn: () => server.request<{ total: number }>("GET", `${pathOf(address)}/count`),
  });
  const prefetch = (): void => prefetchRows(server, as, address);
  return (
    <Table.Tr>
      <Table.Td>
        <Anchor
          component={Link}
          to={pageOf(address)}
          search={(({ as: view }: { as?: string }) => (view === undefined ? {} : { as: view })) as never}
          onPointerEnter={prefetch}
          onFocus={prefetch}
          display="block"
          truncate
          title={address.table}
        >
          {address.table}
        </Anchor>
      </Table.Td>
      <Table.Td ta="right" className="number" c="dimmed" w={110}>
        {count.data === undefined ? (count.error === null ? "" : "not readable") : numberText(count.data.total)}
      </Table.Td>
    </Table.Tr>
  );
}
