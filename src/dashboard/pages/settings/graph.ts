import { Graph, layout } from "@dagrejs/dagre";
import type { Edge, Node, XYPosition } from "@xyflow/react";
import type { Field, TableSchema } from "../../api/resources.ts";

/** Number of a table's fields that the schema diagram draws. */
const DIAGRAM_FIELDS_MAX = 14;

const NODE_WIDTH_PX = 220;
const HEAD_PX = 34;
const FIELD_PX = 22;
const TABLES_APART_PX = 40;
const RANKS_APART_PX = 90;
/** Number of unreferenced tables in a row. */
const ALONE_PER_ROW = 5;

interface FieldLine {
  name: string;
  type: Field["type"];
  /** Table that the field refers to; null: none. */
  refersTo: string | null;
}

interface TableData extends Record<string, unknown> {
  table: string;
  fields: readonly FieldLine[];
  /** Number of fields that are not drawn. */
  more: number;
}

export type TableNode = Node<TableData, "table">;

type Tables = Readonly<Record<string, TableSchema>>;

export const fieldsOf = ({ fields }: TableSchema): FieldLine[] =>
  Object.entries(fields).map(([name, { type, references }]) => ({ name, type, refersTo: references?.table ?? null }));

/** Lays out tables with their first fields, and an arrow for each reference, so that few arrows cross. */
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
    return { table, height, data: { table, fields: shown, more } };
  });
  const connected = new Set(edges.flatMap(({ source, target }) => [source, target]));
  for (const { table, height } of nodes) {
    if (connected.has(table)) graph.setNode(table, { width: NODE_WIDTH_PX, height });
  }
  for (const { source, target } of edges) graph.setEdge(source, target);
  layout(graph);
  const alone = nodes.filter(({ table }) => !connected.has(table));
  const places = inRows(alone, connected.size === 0 ? 0 : (graph.graph().height ?? 0) + TABLES_APART_PX);
  return {
    edges,
    nodes: nodes.map(({ table, height, data }) => {
      const position = places.get(table) ?? cornerOf(graph.node(table), height);
      return { id: table, type: "table", data, width: NODE_WIDTH_PX, height, position, ariaLabel: `Table ${table}` };
    }),
  };
}

const cornerOf = ({ x, y }: { x: number; y: number }, height: number): XYPosition => ({
  x: x - NODE_WIDTH_PX / 2,
  y: y - height / 2,
});

/** Lays out tables without references in rows: a single column would be too narrow to read. */
function inRows(tables: readonly { table: string; height: number }[], top: number): Map<string, XYPosition> {
  const places = new Map<string, XYPosition>();
  let y = top;
  for (let from = 0; from < tables.length; from += ALONE_PER_ROW) {
    const row = tables.slice(from, from + ALONE_PER_ROW);
    for (const [index, { table }] of row.entries()) {
      places.set(table, { x: index * (NODE_WIDTH_PX + TABLES_APART_PX), y });
    }
    y += Math.max(...row.map(({ height }) => height)) + TABLES_APART_PX;
  }
  return places;
}
