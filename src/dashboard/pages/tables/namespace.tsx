import { Anchor, Group, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { declaredAs, useResources } from "../../api/resources.ts";
import { server } from "../../api/server.ts";
import { Ago, bytesText } from "../../parts/format.tsx";
import { DataTable } from "../../parts/list/data-table.tsx";
import { Paged, usePaged } from "../../parts/list/list.tsx";
import { Page, usePageState, usePathParameters } from "../../parts/page.tsx";
import { Empty } from "../../parts/states.tsx";
import { pageOf } from "./address.ts";
import { SearchInput } from "./filter.tsx";

const PAGE = 100;

/** Instances of a namespace. */
export default function NamespacePage() {
  const { namespace } = usePathParameters<"namespace">();
  const { state, change } = usePageState<{ prefix?: string }>();
  const { prefix = "" } = state;
  const schema = useResources();
  const tables = Object.keys(declaredAs(schema.data?.namespaces, namespace)?.tables ?? {});
  const list = usePaged({
    queryKey: ["instances", namespace, prefix],
    load: (cursor) => server.instances(namespace).list({ limit: PAGE, cursor, ...(prefix === "" ? {} : { prefix }) }),
  });
  return (
    <Page title={namespace} hint={`One file per instance, each with ${tables.join(", ")}`}>
      <SearchInput
        placeholder="Beginning of the id"
        text={prefix}
        onChange={(text) => change({ prefix: text === "" ? undefined : text }, { replace: true })}
      />
      <Paged
        list={list}
        empty={
          <Empty title={prefix === "" ? "No instances" : "No instance begins so"}>
            {prefix === "" ? "An instance begins with its first record." : "The search is for the beginning of the id."}
          </Empty>
        }
      >
        {(instances) => (
          <DataTable
            label="Instances"
            minWidth={520}
            items={instances}
            keyOf={({ id }) => id}
            columns={[
              {
                title: "Instance",
                show: ({ id }) => (
                  <Text size="sm" ff="monospace">
                    {id}
                  </Text>
                ),
              },
              {
                title: "Tables",
                show: ({ id }) => (
                  <Group gap="sm">
                    {tables.map((table) => (
                      <Anchor key={table} size="sm" component={Link} to={pageOf({ namespace, instance: id, table })}>
                        {table}
                      </Anchor>
                    ))}
                  </Group>
                ),
              },
              { title: "Size", isNumber: true, show: ({ bytes }) => bytesText(bytes) },
              { title: "Changed", show: ({ writtenAt }) => <Ago time={writtenAt} /> },
            ]}
          />
        )}
      </Paged>
    </Page>
  );
}
