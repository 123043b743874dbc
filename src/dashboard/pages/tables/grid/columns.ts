import { useLocalStorage } from "@mantine/hooks";
import {
  type ColumnDef,
  type ColumnOrderState,
  type ColumnPinningState,
  type ColumnSizingState,
  type ColumnVisibilityState,
  columnOrderingFeature,
  columnPinningFeature,
  columnResizingFeature,
  columnSizingFeature,
  columnVisibilityFeature,
  tableFeatures,
  useTable,
} from "@tanstack/react-table";
import { useMemo } from "react";
import type { Field, TableSchema } from "../../../api/resources.ts";
import { keyOf, type TableAddress } from "../address.ts";
import type { Row } from "../rows.ts";

/** Width in pixels. */
const COLUMN_MIN_WIDTH = 60;

const features = tableFeatures({
  columnOrderingFeature,
  columnPinningFeature,
  columnResizingFeature,
  columnSizingFeature,
  columnVisibilityFeature,
});
type Features = typeof features;

const WIDTHS: Readonly<Record<Field["type"], number>> = {
  string: 180,
  text: 260,
  integer: 120,
  number: 120,
  boolean: 90,
  date: 120,
  datetime: 180,
  geo: 220,
  json: 220,
  references: 220,
  file: 220,
};
const ID_WIDTH = 150;
/** Width of the checkbox column. */
export const CHECK_PX = 40;
/** The table library gets no rows: only those on the screen are loaded. */
const NO_ROWS: Row[] = [];

/** Column choices of an administrator for a table, kept in this browser and shared by instances. */
interface Chosen {
  columnVisibility: ColumnVisibilityState;
  columnPinning: ColumnPinningState;
  columnSizing: ColumnSizingState;
  columnOrder: ColumnOrderState;
}

const CHOSEN: Chosen = {
  columnVisibility: {},
  columnPinning: { start: ["id"], end: [] },
  columnSizing: {},
  columnOrder: [],
};

/** Returns the columns of a table: visibility, order, pinning and widths. */
export function useColumns(address: TableAddress, schema: TableSchema) {
  const { namespace, table: name } = address;
  const [chosen, setChosen, forget] = useLocalStorage<Partial<Chosen>>({
    key: `platform.columns ${keyOf({ namespace, instance: null, table: name }).join(" ")}`,
    defaultValue: CHOSEN,
    getInitialValueInEffect: false,
  });
  const columns = useMemo(
    () =>
      Object.entries(schema.fields).map(
        ([id, field]): ColumnDef<Features, Row> => ({
          id,
          accessorFn: (row) => row[id],
          size: id === "id" ? ID_WIDTH : WIDTHS[field.type],
          minSize: COLUMN_MIN_WIDTH,
        }),
      ),
    [schema],
  );
  const change =
    <Part extends keyof Chosen>(part: Part) =>
    (next: Chosen[Part] | ((before: Chosen[Part]) => Chosen[Part])): void =>
      setChosen((before) => ({
        ...before,
        [part]: typeof next === "function" ? next(before[part] ?? CHOSEN[part]) : next,
      }));
  const table = useTable({
    features,
    columns,
    data: NO_ROWS,
    state: { ...CHOSEN, ...chosen },
    columnResizeMode: "onChange",
    onColumnVisibilityChange: change("columnVisibility"),
    onColumnPinningChange: change("columnPinning"),
    onColumnSizingChange: change("columnSizing"),
    onColumnOrderChange: change("columnOrder"),
  });
  return { table, forget };
}

export type Columns = ReturnType<typeof useColumns>["table"];
type Column = ReturnType<Columns["getVisibleLeafColumns"]>[number];

/** Returns columns in display order, pinned ones first. */
const shownColumns = (columns: Columns): readonly Column[] => [
  ...columns.getStartVisibleLeafColumns(),
  ...columns.getCenterVisibleLeafColumns(),
  ...columns.getEndVisibleLeafColumns(),
];

/** Column as rows render it. */
export interface GridColumn {
  id: string;
  /** Schema of the field; undefined: the record has no declared schema. */
  field: Field | undefined;
  width: number;
  /** Offset from the left edge in pixels; null: not pinned. */
  left: number | null;
  className: string;
  /** Text direction, taken from its letters. */
  dir: "auto" | undefined;
}

const KINDS: Partial<Record<Field["type"], string>> = { integer: "is-number", number: "is-number", json: "is-json" };

export function gridColumns(columns: Columns, schema: TableSchema): GridColumn[] {
  return shownColumns(columns).map((column) => {
    const field = schema.fields[column.id];
    const isPinned = column.getIsPinned() === "start";
    const kind = column.id === "id" ? "is-id" : field === undefined ? "" : (KINDS[field.type] ?? "");
    return {
      id: column.id,
      field,
      width: column.getSize(),
      left: isPinned ? CHECK_PX + column.getStart("start") : null,
      className: `grid-cell ${kind} ${isPinned ? "is-pinned" : ""}`,
      dir: field?.type === "string" || field?.type === "text" ? "auto" : undefined,
    };
  });
}

/** Moves a column past its neighbour on that side. A pinned column stays among the pinned ones. */
export function moveColumn(columns: Columns, id: string, by: -1 | 1): void {
  const shown = shownColumns(columns);
  const column = shown.find((one) => one.id === id);
  if (column === undefined) return;
  const isPinned = column.getIsPinned();
  const alike = shown.filter((one) => one.getIsPinned() === isPinned).map((one) => one.id);
  const neighbour = alike[alike.indexOf(id) + by];
  if (neighbour === undefined) return;
  const swapped = (ids: readonly string[]): string[] =>
    ids.map((one) => (one === id ? neighbour : one === neighbour ? id : one));
  if (isPinned === "start") columns.setColumnPinning((before) => ({ ...before, start: swapped(before.start ?? []) }));
  else columns.setColumnOrder(swapped(allInOrder(columns)));
}

/** Returns all columns in order, including hidden ones. */
const allInOrder = (columns: Columns): string[] => columns.getAllLeafColumns().map(({ id }) => id);

/** Returns whether a column can be moved past a neighbour on that side. */
export function canMove(shown: readonly GridColumn[], index: number, by: -1 | 1): boolean {
  const [column, neighbour] = [shown[index], shown[index + by]];
  return column !== undefined && neighbour !== undefined && (column.left === null) === (neighbour.left === null);
}
