import "./grid.css";
import { useDebouncedValue } from "@mantine/hooks";
import { defaultRangeExtractor, type Range, useVirtualizer } from "@tanstack/react-virtual";
import {
  type CSSProperties,
  type FocusEvent,
  type KeyboardEvent,
  type MouseEvent,
  type RefObject,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { flushSync } from "react-dom";
import type { TableSchema } from "../../../api/resources.ts";
import type { TableAddress } from "../address.ts";
import { hiddenName, type Row } from "../rows.ts";
import type { TitleOf } from "../titles.ts";
import { CHECK_PX, type Columns, type GridColumn, gridColumns } from "./columns.ts";
import { Head } from "./head.tsx";
import { canEdit, GridRow, ROW_PX, type RowActions } from "./row.tsx";

const OVERSCAN_ROWS = 8;
const PASSING_MS = 50;

export interface GridProps {
  address: TableAddress;
  schema: TableSchema;
  table: Columns;
  count: number;
  /** Number of rows in a page. */
  pageRows: number;
  rowAt(index: number): Row | undefined;
  /** Called with the pages whose rows are on the screen. */
  onPages(pages: readonly number[]): void;
  sort: string | null;
  onSort(sort: string | null): void;
  onSummary(column: string): void;
  hasSummary(column: string): boolean;
  selected: ReadonlySet<string>;
  onSelect(selected: ReadonlySet<string>): void;
  flashing: ReadonlySet<string>;
  hidden: ReadonlySet<string>;
  /** Returns titles of referenced records. */
  titleOf: TitleOf;
  isReadOnly: boolean;
  /** Saves a value. Resolves when the server has accepted it. */
  save(row: Row, field: string, value: unknown): Promise<void>;
  open(row: Row): void;
  /** Opens the record that a field refers to. */
  follow(row: Row, column: GridColumn): void;
  /** Called when a cell enters or leaves edit mode. */
  onEditing(isEditing: boolean): void;
}

interface Place {
  row: number;
  column: number;
}

/** Virtualized grid of a table's rows. */
export function Grid(props: GridProps) {
  const { table, schema, count, selected, flashing, hidden, isReadOnly } = props;
  const box = useRef<HTMLDivElement>(null);
  const [focus, setFocus] = useState<Place>({ row: 0, column: 0 });
  const [editing, setEditing] = useState<{ row: number; column: string; record: Row } | null>(null);
  useTold(props.onEditing, editing !== null);
  /** A record in edit mode stays in its place, whatever rows come and go, so that its input reaches no other record. */
  const rowAt = (index: number): Row | undefined => (editing?.row === index ? editing.record : props.rowAt(index));
  const columns = useGridColumns(table, schema);
  const { rows, first, last, pool } = useShownRows(box, props, editing?.row ?? null);
  // Keyboard entry into the grid when the focused cell has been scrolled away.
  const entry = focus.row >= first && focus.row <= last ? focus : { ...focus, row: rows.range?.startIndex ?? first };
  const focusCell = (place: Place): void => {
    rows.scrollToIndex(place.row);
    setFocus(place);
    const focusNow = (): boolean => {
      const cell = box.current?.querySelector<HTMLElement>(`[data-row="${place.row}"][data-column="${place.column}"]`);
      cell?.focus({ preventScroll: true });
      cell?.scrollIntoView({ block: "nearest", inline: "nearest" });
      return cell !== null && cell !== undefined;
    };
    // A row far away is rendered in the next frame.
    if (!focusNow()) requestAnimationFrame(focusNow);
  };
  const begin = (place: Place): void => {
    const record = rowAt(place.row);
    if (record === undefined) return;
    const column = columns[place.column];
    if (column !== undefined && !isReadOnly && canEdit(column)) {
      setEditing({ row: place.row, column: column.id, record });
    } else props.open(record);
  };
  const actions = useActions({
    toggle: (id) => props.onSelect(toggled(selected, id)),
    save: props.save,
    endEditing() {
      // The row leaving edit mode becomes another element.
      flushSync(() => setEditing(null));
      focusCell(focus);
    },
  });
  const grid = { columns, focus, setFocus, focusCell, begin, toggle: actions.toggle, box };
  const handlers = handlersOf({ ...props, rowAt }, grid);
  return (
    <div
      ref={box}
      className="grid"
      role="grid"
      aria-label={props.address.table}
      aria-rowcount={count + 1}
      aria-colcount={columns.length + 1}
      aria-multiselectable="true"
      tabIndex={-1}
      style={templateOf(columns)}
      {...handlers}
    >
      <Head
        columns={columns}
        table={table}
        sort={props.sort}
        onSort={props.onSort}
        onSummary={props.onSummary}
        hasSummary={props.hasSummary}
      />
      <div className="grid-body" role="rowgroup" style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map(({ index }) => {
          const row = rowAt(index);
          return (
            <GridRow
              // Elements are recycled for other rows, which is far cheaper than creating them. The row in edit mode keeps its
              // own.
              key={editing?.row === index ? `edited ${editing.record.id}` : index % pool}
              address={props.address}
              columns={columns}
              actions={actions}
              titleOf={props.titleOf}
              row={row}
              index={index}
              focusedColumn={entry.row === index ? entry.column : -1}
              editingColumn={editing?.row === index ? columns.findIndex(({ id }) => id === editing.column) : -1}
              isReadOnly={isReadOnly}
              isSelected={row !== undefined && selected.has(row.id)}
              isFlashing={row !== undefined && flashing.has(row.id)}
              isHidden={row !== undefined && hidden.has(hiddenName(props.address, row.id))}
            />
          );
        })}
      </div>
    </div>
  );
}

/** Returns the delegated handlers of keys and clicks: thousands of rows need none of their own. */
function handlersOf(
  { count, rowAt, open, follow }: GridProps,
  grid: {
    columns: readonly GridColumn[];
    focus: Place;
    setFocus(place: Place): void;
    focusCell(place: Place): void;
    begin(place: Place): void;
    toggle(id: string): void;
    box: RefObject<HTMLDivElement | null>;
  },
) {
  const { columns, focus } = grid;
  return {
    onKeyDown(event: KeyboardEvent): void {
      if (placeOf(event.target, { isCell: true }) === null) return;
      const rowsOfScreen = Math.floor((grid.box.current?.clientHeight ?? 0) / ROW_PX) - 2;
      const next = nextPlace(event, focus, { rowsOfScreen, rows: count, columns: columns.length });
      const [row, column] = [rowAt(focus.row), columns[focus.column]];
      if (next !== null) grid.focusCell(next);
      else if (event.key === "Enter" && event.altKey && row !== undefined && column !== undefined) follow(row, column);
      else if (event.key === "Enter") grid.begin(focus);
      else if (event.key === " " && row !== undefined) grid.toggle(row.id);
      else return;
      event.preventDefault();
    },
    onClick(event: MouseEvent): void {
      const place = placeOf(event.target);
      const row = place === null ? undefined : rowAt(place.row);
      const column = place === null ? undefined : columns[place.column];
      if (row === undefined || column === undefined) return;
      const isFollowed = event.target instanceof Element && event.target.closest("[data-follow]") !== null;
      if (isFollowed) follow(row, column);
      else if (column.id === "id") open(row);
    },
    onDoubleClick(event: MouseEvent): void {
      const place = placeOf(event.target);
      if (place !== null) grid.begin(place);
    },
    onFocus(event: FocusEvent): void {
      const place = placeOf(event.target, { isCell: true });
      if (place !== null) grid.setFocus(place);
    },
  };
}

/** Returns the rows on the screen, and the one in edit mode wherever it is. `pool`: more than were ever rendered at once. */
function useShownRows(
  box: RefObject<HTMLDivElement | null>,
  { count, pageRows, onPages }: GridProps,
  editedRow: number | null,
) {
  const withEdited = useCallback(
    (range: Range): number[] => {
      const shown = defaultRangeExtractor(range);
      return editedRow === null || shown.includes(editedRow) ? shown : [...shown, editedRow];
    },
    [editedRow],
  );
  const rows = useVirtualizer({
    count: Math.max(count, editedRow === null ? 0 : editedRow + 1),
    getScrollElement: () => box.current,
    estimateSize: () => ROW_PX,
    overscan: OVERSCAN_ROWS,
    rangeExtractor: withEdited,
  });
  const items = rows.getVirtualItems();
  const { startIndex = 0, endIndex = 0 } = rows.range ?? {};
  const [first, last] = [
    Math.max(0, startIndex - OVERSCAN_ROWS),
    Math.max(0, Math.min(count - 1, endIndex + OVERSCAN_ROWS)),
  ];
  const pages = useMemo(() => {
    const [from, to] = [Math.floor(first / pageRows), Math.floor(last / pageRows)];
    return Array.from({ length: to - from + 1 }, (_, index) => from + index);
  }, [first, last, pageRows]);
  // Debounced: of pages scrolled past quickly only the last ones are loaded.
  const [wanted] = useDebouncedValue(pages, PASSING_MS, { leading: true });
  useEffect(() => onPages(wanted), [onPages, wanted]);
  const pool = useRef(0);
  pool.current = Math.max(pool.current, items.length + 1);
  return { rows, first, last, pool: pool.current };
}

/** Returns the columns as rows render them; the same array until a column changes. */
function useGridColumns(table: Columns, schema: TableSchema): readonly GridColumn[] {
  const now = gridColumns(table, schema);
  const known = useRef(now);
  const isSame = (column: GridColumn, index: number): boolean => {
    const before = known.current[index];
    return (
      before?.id === column.id &&
      before.width === column.width &&
      before.left === column.left &&
      before.field === column.field
    );
  };
  if (now.length !== known.current.length || !now.every(isSame)) known.current = now;
  return known.current;
}

/** Calls a callback when a state changes. */
function useTold(tell: (state: boolean) => void, state: boolean): void {
  useEffect(() => tell(state), [tell, state]);
}

/** Returns stable functions that call the latest actions. */
function useActions(actions: RowActions): RowActions {
  const latest = useRef(actions);
  latest.current = actions;
  return useMemo(
    () => ({
      toggle: (id) => latest.current.toggle(id),
      save: (row, field, value) => latest.current.save(row, field, value),
      endEditing: () => latest.current.endEditing(),
    }),
    [],
  );
}

function templateOf(columns: readonly GridColumn[]): CSSProperties {
  const widths = [CHECK_PX, ...columns.map(({ width }) => width)];
  const width = widths.reduce((sum, one) => sum + one, 0);
  return { "--columns": widths.map((one) => `${one}px`).join(" "), "--width": `${width}px` } as CSSProperties;
}

/** Returns the cell of an event. `isCell`: only if the event's target is the cell itself. */
function placeOf(target: EventTarget, { isCell }: { isCell: boolean } = { isCell: false }): Place | null {
  if (!(target instanceof Element)) return null;
  const cell = target.closest<HTMLElement>("[data-row]");
  if (cell === null || (isCell && cell !== target) || target.closest(".cell-editor") !== null) return null;
  return { row: Number(cell.dataset["row"]), column: Number(cell.dataset["column"]) };
}

/** Returns the cell to which a key moves; null: nowhere. */
function nextPlace(
  { key, ctrlKey, metaKey }: KeyboardEvent,
  { row, column }: Place,
  { rowsOfScreen, rows, columns }: { rowsOfScreen: number; rows: number; columns: number },
): Place | null {
  const to = (toRow: number, toColumn: number): Place => ({
    row: Math.max(0, Math.min(rows - 1, toRow)),
    column: Math.max(0, Math.min(columns - 1, toColumn)),
  });
  const isFar = ctrlKey || metaKey;
  switch (key) {
    case "ArrowDown":
      return to(row + 1, column);
    case "ArrowUp":
      return to(row - 1, column);
    case "ArrowLeft":
      return to(row, column - 1);
    case "ArrowRight":
      return to(row, column + 1);
    case "PageDown":
      return to(row + rowsOfScreen, column);
    case "PageUp":
      return to(row - rowsOfScreen, column);
    case "Home":
      return isFar ? to(0, column) : to(row, 0);
    case "End":
      return isFar ? to(rows - 1, column) : to(row, columns - 1);
    default:
      return null;
  }
}

function toggled(selected: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const next = new Set(selected);
  if (!next.delete(id)) next.add(id);
  return next;
}
