import "@xyflow/react/dist/style.css";
import { useComputedColorScheme } from "@mantine/core";
import { Background, Controls, Handle, type NodeProps, Position, ReactFlow } from "@xyflow/react";
import { useMemo } from "react";
import type { TableSchema } from "../../../api/resources.ts";
import { graphOf, type TableNode } from "./graph.ts";

/** Tables and what they refer to. It is moved and zoomed with pointer and keyboard; nothing is changed. */
export function Diagram({ label, tables }: { label: string; tables: Readonly<Record<string, TableSchema>> }) {
  const { nodes, edges } = useMemo(() => graphOf(tables), [tables]);
  const colorMode = useComputedColorScheme();
  return (
    <div className="diagram" role="application" aria-label={label}>
      <ReactFlow
        // Laid out anew for other tables.
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

function Table({ data: { table, fields, more } }: NodeProps<TableNode>) {
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

const NODES = { table: Table };
