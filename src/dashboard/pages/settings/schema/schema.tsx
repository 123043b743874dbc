import { Anchor, Select, Stack, Table, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { declaredAs, useResources } from "../../../api/resources.ts";
import { usePageState } from "../../../parts/address.ts";
import { Section } from "../../../parts/section.tsx";
import { Empty, Loadable } from "../../../parts/states.tsx";
import { Wide } from "../../../parts/wide.tsx";
import { pageOf } from "../../tables/address.ts";
import { Diagram } from "./diagram.tsx";
import { fieldsOf } from "./graph.ts";

/** The tables of a namespace as a diagram, and as text. */
export default function Schema() {
  const resources = useResources();
  const { state, change } = usePageState<{ namespace: string }>();
  return (
    <Loadable query={resources}>
      {({ namespaces }) => {
        const names = Object.keys(namespaces);
        const name = state.namespace ?? names[0];
        const namespace = name === undefined ? undefined : declaredAs(namespaces, name);
        if (name === undefined || namespace === undefined) {
          return (
            <Empty title="No tables">
              Declare tables under <code>databases</code>.
            </Empty>
          );
        }
        return (
          <Stack gap="md">
            <Select
              label="Namespace"
              w={280}
              data={names}
              value={name}
              allowDeselect={false}
              onChange={(next) => change({ namespace: next ?? undefined })}
            />
            <Diagram label={`The tables of ${name}`} tables={namespace.tables} />
            <Text size="sm" c="dimmed">
              Arrows are references. Drag or use the arrow keys on a table to move it; + and − zoom.
            </Text>
            {Object.entries(namespace.tables).map(([table, schema]) => (
              <Section
                key={table}
                title={table}
                actions={
                  <Anchor
                    component={Link}
                    size="sm"
                    to={namespace.instance ? `/tables/${name}` : pageOf({ namespace: name, instance: null, table })}
                    aria-label={`Records of ${table}`}
                  >
                    Records
                  </Anchor>
                }
              >
                <Wide minWidth={360}>
                  <Table verticalSpacing={2} aria-label={`Fields of ${table}`}>
                    <Table.Tbody>
                      {fieldsOf(schema).map(({ name: field, type, refersTo }) => (
                        <Table.Tr key={field}>
                          <Table.Td>{field}</Table.Td>
                          <Table.Td c="dimmed">{type}</Table.Td>
                          <Table.Td>{refersTo === null ? "" : `refers to ${refersTo}`}</Table.Td>
                        </Table.Tr>
                      ))}
                    </Table.Tbody>
                  </Table>
                </Wide>
              </Section>
            ))}
          </Stack>
        );
      }}
    </Loadable>
  );
}
