import "./grid.css";
import { Checkbox } from "@mantine/core";
import { IconArrowDown, IconArrowUp } from "@tabler/icons-react";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type CSSProperties, type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import type { Field, TableSchema } from "../../../api/resources.ts";
import type { Row } from "../rows.ts";
import { PAGE_ROWS } from "../rows.ts";
import { cellText } from "./cell-text.ts";
import { type Column, type Columns, shownColumns } from "./columns.ts";
import { CellEditor } from "./editor.tsx";

const ROW_PX = 35;
const CHECK_PX = 40;
const OVERSCAN_ROWS = 12;

export interface GridProps {
  name: string;
  schema: TableSchema;
  columns: Columns;
  count: number;
  rowAt(index: number): Row | undefined;
  /** Called with the pages of rows that are on the screen. */
  onPages(pages: readonly number[]): void;
  sort: string | null;
  onSort(sort: string | null): void;
  selected: ReadonlySet<string>;
  onSelect(selected: ReadonlySet<string>): void;
  flashing: ReadonlySet<string>;
  hidden: ReadonlySet<string>;
  isReadOnly: boolean;
  /** Resolves when the server has taken the value. */
  save(row: Row, field: string, value: unknown): Promise<void>;
  open(row: Row): void;
}

interface Place {
  row: number;
  column: number;
}

/** Rows of a table, of which those on the screen exist. */
export function Grid(props: GridProps) {
  const { columns, count, onPages, rowAt } = props;
  const box = useRef<HTMLDivElement>(null);
  const [focus, setFocus] = useState<Place>({ row: 0, column: 0 });
  const [editing, setEditing] = useState<Place | null>(null);
  const rows = useVirtualizer({
    count,
    getScrollElement: () => box.current,
    estimateSize: () => ROW_PX,
    overscan: OVERSCAN_ROWS,
  });
  const shown = shownColumns(columns);
  const items = rows.getVirtualItems();
  const [first, last] = [items[0]?.index ?? 0, items.at(-1)?.index ?? 0];
  const pages = useMemo(() => {
    const [from, to] = [Math.floor(first / PAGE_ROWS), Math.floor(last / PAGE_ROWS)];
    return Array.from({ length: to - from + 1 }, (_, index) => from + index);
  }, [first, last]);
  useEffect(() => onPages(pages), [onPages, pages]);

  const focusCell = ({ row, column }: Place): void => {
    rows.scrollToIndex(row);
    setFocus({ row, column });
    requestAnimationFrame(() =>
      box.current?.querySelector<HTMLElement>(`[data-row="${row}"][data-column="${column}"]`)?.focus(),
    );
  };
  const move = (rowBy: number, columnBy: number): void =>
    focusCell({
      row: Math.max(0, Math.min(count - 1, focus.row + rowBy)),
      column: Math.max(0, Math.min(shown.length - 1, focus.column + columnBy)),
    });
  const onKeyDown = (event: KeyboardEvent): void => {
    if (!(event.target instanceof HTMLElement) || event.target.dataset["row"] === undefined) return;
    const rowsOfScreen = Math.floor((box.current?.clientHeight ?? 0) / ROW_PX) - 2;
    const by = moveOf(event.key, { rows: rowsOfScreen, columns: shown.length });
    const row = rowAt(focus.row);
    if (by !== null) move(...by);
    else if (event.key === "Enter") setEditing(focus);
    else if (event.key === " " && row !== undefined) props.onSelect(toggled(props.selected, row.id));
    else return;
    event.preventDefault();
  };
  const width = CHECK_PX + columns.getTotalSize();
  return (
    <div
      ref={box}
      className="grid"
      role="grid"
      aria-label={props.name}
      aria-rowcount={count + 1}
      aria-colcount={shown.length + 1}
      aria-multiselectable="true"
      tabIndex={-1}
      onKeyDown={onKeyDown}
    >
      <Head {...props} shown={shown} width={width} />
      <div className="grid-body" role="rowgroup" style={{ height: rows.getTotalSize(), width }}>
        {items.map(({ index, start }) => {
          const row = rowAt(index);
          return (
            <GridRow
              key={row?.id ?? index}
              {...props}
              shown={shown}
              row={row}
              index={index}
              style={{ transform: `translateY(${start}px)`, width, height: ROW_PX }}
              focus={focus}
              editing={editing}
              onFocus={setFocus}
              onEdit={(place) => {
                setEditing(place);
                if (place === null) focusCell(focus);
              }}
            />
          );
        })}
      </div>
    </div>
  );
}

/** By how many rows and columns a key moves; null: it does not. */
function moveOf(key: string, screen: { rows: number; columns: number }): [rows: number, columns: number] | null {
  switch (key) {
    case "ArrowDown":
      return [1, 0];
    case "ArrowUp":
      return [-1, 0];
    case "ArrowLeft":
      return [0, -1];
    case "ArrowRight":
      return [0, 1];
    case "PageDown":
      return [screen.rows, 0];
    case "PageUp":
      return [-screen.rows, 0];
    case "Home":
      return [0, -screen.columns];
    case "End":
      return [0, screen.columns];
    default:
      return null;
  }
}

function GridRow({
  shown,
  row,
  index,
  style,
  focus,
  editing,
  ...props
}: GridProps & {
  shown: readonly Column[];
  row: Row | undefined;
  index: number;
  style: CSSProperties;
  focus: Place;
  editing: Place | null;
  onFocus(place: Place): void;
  onEdit(place: Place | null): void;
}) {
  const { selected, onSelect, flashing, hidden } = props;
  const isHidden = row !== undefined && hidden.has(row.id);
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      aria-selected={row !== undefined && selected.has(row.id)}
      className={`grid-row ${row !== undefined && flashing.has(row.id) ? "is-flashing" : ""}`}
      style={{ ...style, opacity: isHidden ? 0.35 : 1 }}
    >
      <div className="grid-cell is-pinned" role="gridcell" style={{ width: CHECK_PX, left: 0 }}>
        {row === undefined ? null : (
          <Checkbox
            size="xs"
            mt={9}
            tabIndex={-1}
            aria-label={`Select ${row.id}`}
            checked={selected.has(row.id)}
            onChange={() => onSelect(toggled(selected, row.id))}
          />
        )}
      </div>
      {shown.map((column, at) => (
        <Cell
          key={column.id}
          {...props}
          column={column}
          row={row}
          place={{ row: index, column: at }}
          isFocused={focus.row === index && focus.column === at}
          isEditing={editing?.row === index && editing.column === at}
        />
      ))}
    </div>
  );
}

function toggled(selected: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const next = new Set(selected);
  if (!next.delete(id)) next.add(id);
  return next;
}

/** Pinned columns stay where they are when the others are scrolled. */
const styleOf = (column: Column): CSSProperties =>
  column.getIsPinned() === "start"
    ? { width: column.getSize(), left: CHECK_PX + column.getStart("start") }
    : { width: column.getSize() };

const pinnedClass = (column: Column): string => (column.getIsPinned() === "start" ? "is-pinned" : "");

function Head({
  schema,
  sort,
  onSort,
  columns,
  shown,
  width,
}: Pick<GridProps, "schema" | "sort" | "onSort" | "columns"> & { shown: readonly Column[]; width: number }) {
  const [sortedBy, direction] = sort?.split(":") ?? [];
  const headers = new Map(columns.getLeafHeaders().map((header) => [header.column.id, header]));
  return (
    <div className="grid-head" role="row" aria-rowindex={1} style={{ width }}>
      <div
        className="grid-cell is-pinned"
        role="columnheader"
        aria-label="Selection"
        style={{ width: CHECK_PX, left: 0 }}
      />
      {shown.map((column) => {
        const isSorted = column.id === sortedBy;
        const next = !isSorted ? `${column.id}:asc` : direction === "asc" ? `${column.id}:desc` : null;
        const isDescending = direction === "desc";
        return (
          <div
            key={column.id}
            className={`grid-cell ${pinnedClass(column)}`}
            role="columnheader"
            aria-sort={isSorted ? (isDescending ? "descending" : "ascending") : "none"}
            style={styleOf(column)}
          >
            {schema.fields[column.id]?.type === "json" ? (
              <span>{column.id}</span>
            ) : (
              <button type="button" className="grid-sort" onClick={() => onSort(next)}>
                {column.id}
              </button>
            )}
            {isSorted ? (
              isDescending ? (
                <IconArrowDown size={14} aria-hidden />
              ) : (
                <IconArrowUp size={14} aria-hidden />
              )
            ) : null}
            <span className="grid-resize" aria-hidden onPointerDown={headers.get(column.id)?.getResizeHandler()} />
          </div>
        );
      })}
    </div>
  );
}

function Cell({
  schema,
  column,
  row,
  place,
  isFocused,
  isEditing,
  isReadOnly,
  onFocus,
  onEdit,
  save,
  open,
}: Pick<GridProps, "schema" | "isReadOnly" | "save" | "open"> & {
  column: Column;
  row: Row | undefined;
  place: Place;
  isFocused: boolean;
  isEditing: boolean;
  onFocus(place: Place): void;
  onEdit(place: Place | null): void;
}) {
  const field: Field | undefined = schema.fields[column.id];
  const value = row?.[column.id];
  const canEdit = !isReadOnly && row !== undefined && field !== undefined && !field.generated && column.id !== "id";
  const isShownInEditor = isEditing && canEdit;
  const kind =
    field?.type === "integer" || field?.type === "number" ? "is-number" : field?.type === "json" ? "is-json" : "";
  const begin = (): void => {
    if (canEdit) onEdit(place);
    else if (row !== undefined) open(row);
  };
  return (
    <div
      role="gridcell"
      tabIndex={isFocused ? 0 : -1}
      data-row={place.row}
      data-column={place.column}
      aria-readonly={!canEdit}
      className={`grid-cell ${pinnedClass(column)} ${kind} ${column.id === "id" ? "is-id" : ""} ${isShownInEditor ? "is-editing" : ""}`}
      style={styleOf(column)}
      onFocus={() => onFocus(place)}
      onDoubleClick={begin}
      onClick={() => {
        if (column.id === "id" && row !== undefined) open(row);
      }}
      onKeyDown={(event) => {
        if (event.key === "Enter" && !canEdit && row !== undefined && !isShownInEditor) open(row);
      }}
    >
      {isShownInEditor && field !== undefined && row !== undefined ? (
        <CellEditor
          name={column.id}
          field={field}
          value={value}
          save={(next) => save(row, column.id, next)}
          close={() => onEdit(null)}
        />
      ) : value === null || value === undefined ? (
        <span className="is-null">{row === undefined ? "" : "–"}</span>
      ) : (
        cellText(value, field)
      )}
    </div>
  );
}
