import { Anchor, Select, Stack, Table, Text, useComputedColorScheme } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { declaredAs, type TableSchema, useResources } from "../../api/resources.ts";
import { Wide } from "../../parts/list/list.tsx";
import { Section, usePageState } from "../../parts/page.tsx";
import { Empty, Loadable } from "../../parts/states.tsx";
import { pageOf } from "../tables/address.ts";
import { fieldsOf, graphOf, type TableNode } from "./graph.ts";
import "@xyflow/react/dist/style.css";
import { Background, Controls, Handle, type NodeProps, Position, ReactFlow } from "@xyflow/react";
import { useMemo } from "react";

/** Tables of a namespace as a diagram, and as text. */
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

/** Read-only diagram of tables and references, with pan and zoom by pointer and keyboard. */
export function Diagram({ label, tables }: { label: string; tables: Readonly<Record<string, TableSchema>> }) {
  const { nodes, edges } = useMemo(() => graphOf(tables), [tables]);
  const colorMode = useComputedColorScheme();
  return (
    <div className="diagram" role="application" aria-label={label}>
      <ReactFlow
        // Other tables need a new layout.
        key={nodes.map(({ id }) => id).join(" ")}
        defaultNodes={nodes}
        defaultEdges={edges}
        nodeTypes={NODES}
        colorMode={colorMode}
        fitView
        minZoom={0.1}
        nodesConnectable={false}
        deleteKeyCode={null}
        edgesFocusable={false}
      >
        <Background />
        <Controls showInteractive={false} />
      </ReactFlow>
    </div>
  );
}

function TableBox({ data: { table, fields, more } }: NodeProps<TableNode>) {
  return (
    <div className="diagram-table">
      <Handle type="target" position={Position.Left} isConnectable={false} />
      <strong>{table}</strong>
      {fields.map(({ name, type, refersTo }) => (
        <div key={name}>
          <span>{name}</span>
          <span>{refersTo === null ? type : `→ ${refersTo}`}</span>
        </div>
      ))}
      {more > 0 ? <div>and {more} more</div> : null}
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </div>
  );
}

const NODES = { table: TableBox };
