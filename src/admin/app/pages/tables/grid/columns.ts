import { useLocalStorage } from "@mantine/hooks";
import {
  type ColumnDef,
  type ColumnPinningState,
  type ColumnSizingState,
  type ColumnVisibilityState,
  columnPinningFeature,
  columnResizingFeature,
  columnSizingFeature,
  columnVisibilityFeature,
  tableFeatures,
  useTable,
} from "@tanstack/react-table";
import { useMemo } from "react";
import type { Field, TableSchema } from "../../../api/resources.ts";
import { COLUMN_MIN_WIDTH } from "../../../limits.ts";
import { keyOf, type TableAddress } from "../address.ts";
import type { Row } from "../rows.ts";

const features = tableFeatures({
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
  datetime: 180,
  json: 220,
};
const ID_WIDTH = 150;
/** Rows are not the table's: only those on the screen are loaded. */
const NO_ROWS: Row[] = [];

/** What an administrator has chosen for a table; kept in this browser, with or without an instance. */
interface Chosen {
  columnVisibility: ColumnVisibilityState;
  columnPinning: ColumnPinningState;
  columnSizing: ColumnSizingState;
}

const CHOSEN: Chosen = { columnVisibility: {}, columnPinning: { start: ["id"], end: [] }, columnSizing: {} };

/** The columns of a table: which are shown, which are pinned, and how wide each one is. */
export function useColumns(address: TableAddress, schema: TableSchema) {
  const { namespace, table: name } = address;
  const [chosen, setChosen] = useLocalStorage<Chosen>({
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
      setChosen((before) => ({ ...before, [part]: typeof next === "function" ? next(before[part]) : next }));
  return useTable({
    features,
    columns,
    data: NO_ROWS,
    state: chosen,
    columnResizeMode: "onChange",
    onColumnVisibilityChange: change("columnVisibility"),
    onColumnPinningChange: change("columnPinning"),
    onColumnSizingChange: change("columnSizing"),
  });
}

export type Columns = ReturnType<typeof useColumns>;
export type Column = ReturnType<Columns["getVisibleLeafColumns"]>[number];

/** In the order in which they are shown: the pinned ones first. */
export const shownColumns = (columns: Columns): readonly Column[] => [
  ...columns.getStartVisibleLeafColumns(),
  ...columns.getCenterVisibleLeafColumns(),
  ...columns.getEndVisibleLeafColumns(),
];
