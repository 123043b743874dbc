import { Graph, layout } from "@dagrejs/dagre";
import type { Edge, Node } from "@xyflow/react";
import type { Field, TableSchema } from "../../../api/resources.ts";
import { DIAGRAM_FIELDS_MAX } from "../../../limits.ts";

export const NODE_WIDTH_PX = 220;
const HEAD_PX = 34;
const FIELD_PX = 22;
const TABLES_APART_PX = 40;
const RANKS_APART_PX = 90;

export interface FieldLine {
  name: string;
  type: Field["type"];
  /** The table that it refers to; null: none. */
  refersTo: string | null;
}

export interface TableData extends Record<string, unknown> {
  table: string;
  fields: readonly FieldLine[];
  /** Fields that are not drawn. */
  more: number;
}

export type TableNode = Node<TableData, "table">;

type Tables = Readonly<Record<string, TableSchema>>;

export const fieldsOf = ({ fields }: TableSchema): FieldLine[] =>
  Object.entries(fields).map(([name, { type, references }]) => ({ name, type, refersTo: references?.table ?? null }));

/** Each table with its first fields, and an arrow for each reference, laid out so that few arrows cross. */
export function graphOf(tables: Tables): { nodes: TableNode[]; edges: Edge[] } {
  const edges = Object.entries(tables).flatMap(([table, schema]) =>
    fieldsOf(schema).flatMap(({ name, refersTo }) =>
      refersTo === null ? [] : [{ id: `${table}.${name}`, source: table, target: refersTo, label: name }],
    ),
  );
  const graph = new Graph();
  graph.setGraph({ rankdir: "LR", nodesep: TABLES_APART_PX, ranksep: RANKS_APART_PX });
  graph.setDefaultEdgeLabel(() => ({}));
  const nodes = Object.entries(tables).map(([table, schema]) => {
    const fields = fieldsOf(schema);
    const shown = fields.slice(0, DIAGRAM_FIELDS_MAX);
    const more = fields.length - shown.length;
    const height = HEAD_PX + FIELD_PX * (shown.length + (more > 0 ? 1 : 0)) + FIELD_PX / 2;
    graph.setNode(table, { width: NODE_WIDTH_PX, height });
    return { table, height, data: { table, fields: shown, more } };
  });
  for (const { source, target } of edges) graph.setEdge(source, target);
  layout(graph);
  return {
    edges,
    nodes: nodes.map(({ table, height, data }) => {
      const { x, y } = graph.node(table);
      return {
        id: table,
        type: "table",
        data,
        width: NODE_WIDTH_PX,
        height,
        position: { x: x - NODE_WIDTH_PX / 2, y: y - height / 2 },
        ariaLabel: `Table ${table}`,
      };
    }),
  };
}
