import { Code, Modal } from "@mantine/core";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useMemo, useRef, useState } from "react";
import type { ResultRow } from "./statements.ts";

const ROW_PX = 29;
const CHARACTER_PX = 7.4;
const PADDING_PX = 22;
const WIDTH_MIN_PX = 56;
const WIDTH_MAX_PX = 380;
/** Number of rows that are measured for column widths. */
const MEASURED_ROWS = 100;
const OVERSCAN_ROWS = 12;
const OVERSCAN_COLUMNS = 3;
const CELL_CHARACTERS = 300;
const SHOWN_CHARACTERS = 200_000;

interface Place {
  row: number;
  column: number;
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : String(value));
const cut = (text: string, length: number): string => (text.length > length ? `${text.slice(0, length)}…` : text);

function widthOf(column: string, rows: readonly ResultRow[]): number {
  let characters = column.length + 1;
  for (const row of rows.slice(0, MEASURED_ROWS)) characters = Math.max(characters, textOf(row[column]).length);
  return Math.min(WIDTH_MAX_PX, Math.max(WIDTH_MIN_PX, Math.ceil(characters * CHARACTER_PX) + PADDING_PX));
}

/** Virtualized grid of a result's rows. Enter and a double click show a whole value. */
export function ResultGrid({ name, rows }: { name: string; rows: readonly ResultRow[] }) {
  const box = useRef<HTMLDivElement>(null);
  const [focus, setFocus] = useState<Place>({ row: 0, column: 0 });
  const [open, setOpen] = useState<Place | null>(null);
  const names = useMemo(() => Object.keys(rows[0] ?? {}), [rows]);
  const widths = useMemo(() => names.map((column) => widthOf(column, rows)), [names, rows]);
  const lines = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW_PX,
    overscan: OVERSCAN_ROWS,
  });
  const columns = useVirtualizer({
    horizontal: true,
    count: names.length,
    getScrollElement: () => box.current,
    estimateSize: (index) => widths[index] ?? WIDTH_MIN_PX,
    overscan: OVERSCAN_COLUMNS,
  });
  const shown = columns.getVirtualItems();
  const width = columns.getTotalSize();

  const focusCell = ({ row, column }: Place): void => {
    lines.scrollToIndex(row);
    columns.scrollToIndex(column);
    setFocus({ row, column });
    requestAnimationFrame(() =>
      box.current?.querySelector<HTMLElement>(`[data-row="${row}"][data-column="${column}"]`)?.focus(),
    );
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const rowsOfScreen = Math.floor((box.current?.clientHeight ?? 0) / ROW_PX) - 2;
    const size = { rows: rows.length, columns: names.length, rowsOfScreen };
    const next = placeAfter(event, focus, size);
    if (next !== null) focusCell(next);
    else if (event.key === "Enter") setOpen(focus);
    else return;
    event.preventDefault();
  };
  const openName = open === null ? "" : (names[open.column] ?? "");
  return (
    <>
      <div
        ref={box}
        className="result-grid"
        role="grid"
        aria-label={name}
        aria-rowcount={rows.length + 1}
        aria-colcount={names.length}
        aria-readonly="true"
        tabIndex={-1}
        onKeyDown={onKeyDown}
      >
        <Head names={names} shown={shown} width={width} />
        <div role="rowgroup" style={{ height: lines.getTotalSize(), width, position: "relative" }}>
          {lines.getVirtualItems().map((line) => (
            <div
              key={line.index}
              className="result-row"
              role="row"
              tabIndex={-1}
              aria-rowindex={line.index + 2}
              style={{ transform: `translateY(${line.start}px)`, width }}
            >
              {shown.map(({ index, start, size }) => (
                <Cell
                  key={index}
                  value={rows[line.index]?.[names[index] ?? ""]}
                  place={{ row: line.index, column: index }}
                  isFocused={focus.row === line.index && focus.column === index}
                  style={{ transform: `translateX(${start}px)`, width: size }}
                  onFocus={setFocus}
                  onOpen={setOpen}
                />
              ))}
            </div>
          ))}
        </div>
      </div>
      <Modal opened={open !== null} onClose={() => setOpen(null)} title={openName} size="xl">
        <Code block className="result-value">
          {open === null ? "" : cut(textOf(rows[open.row]?.[openName]), SHOWN_CHARACTERS)}
        </Code>
      </Modal>
    </>
  );
}

/** Returns the cell to which a key moves; null: nowhere. */
function placeAfter(
  { key, ctrlKey }: KeyboardEvent,
  { row, column }: Place,
  { rows, columns, rowsOfScreen }: { rows: number; columns: number; rowsOfScreen: number },
): Place | null {
  const [lastRow, lastColumn] = [rows - 1, columns - 1];
  const moves: Readonly<Record<string, readonly [number, number]>> = {
    ArrowDown: [row + 1, column],
    ArrowUp: [row - 1, column],
    ArrowLeft: [row, column - 1],
    ArrowRight: [row, column + 1],
    PageDown: [row + rowsOfScreen, column],
    PageUp: [row - rowsOfScreen, column],
    Home: [ctrlKey ? 0 : row, 0],
    End: [ctrlKey ? lastRow : row, lastColumn],
  };
  const next = moves[key];
  if (next === undefined) return null;
  return { row: Math.max(0, Math.min(lastRow, next[0])), column: Math.max(0, Math.min(lastColumn, next[1])) };
}

function Head({
  names,
  shown,
  width,
}: {
  names: readonly string[];
  shown: readonly { index: number; start: number; size: number }[];
  width: number;
}) {
  return (
    <div className="result-head" role="row" aria-rowindex={1} tabIndex={-1} style={{ width }}>
      {shown.map(({ index, start, size }) => (
        <div
          key={index}
          className="result-cell"
          role="columnheader"
          tabIndex={-1}
          aria-colindex={index + 1}
          title={names[index]}
          style={{ transform: `translateX(${start}px)`, width: size }}
        >
          {names[index]}
        </div>
      ))}
    </div>
  );
}

function Cell({
  value,
  place,
  isFocused,
  style,
  onFocus,
  onOpen,
}: {
  value: unknown;
  place: Place;
  isFocused: boolean;
  style: React.CSSProperties;
  onFocus(place: Place): void;
  onOpen(place: Place): void;
}) {
  return (
    <div
      className={`result-cell ${typeof value === "number" ? "is-number" : ""}`}
      role="gridcell"
      aria-colindex={place.column + 1}
      tabIndex={isFocused ? 0 : -1}
      data-row={place.row}
      data-column={place.column}
      style={style}
      onFocus={() => onFocus(place)}
      onDoubleClick={() => onOpen(place)}
    >
      {value === null || value === undefined ? (
        <span className="result-null">NULL</span>
      ) : (
        cut(textOf(value), CELL_CHARACTERS)
      )}
    </div>
  );
}
