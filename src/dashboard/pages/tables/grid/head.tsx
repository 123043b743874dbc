import { Menu } from "@mantine/core";
import { memo } from "react";
import {
  IconArrowDown,
  IconArrowLeft,
  IconArrowRight,
  IconArrowUp,
  IconDotsVertical,
  IconEyeOff,
  IconPin,
  IconPinnedOff,
  IconSum,
} from "../../../parts/icons.tsx";
import { isJsonText } from "./cell-text.tsx";
import { type Columns, canMove, type GridColumn, moveColumn } from "./columns.ts";

interface HeadProps {
  /** Columns; a new array when one of them has changed. */
  columns: readonly GridColumn[];
  table: Columns;
  sort: string | null;
  onSort(sort: string | null): void;
  onSummary(column: string): void;
  hasSummary(column: string): boolean;
}

/** Column headers with their actions. */
export const Head = memo(function Head({ columns, table, sort, onSort, ...summary }: HeadProps) {
  const [sortedBy, direction] = sort?.split(":") ?? [];
  const headers = new Map(table.getLeafHeaders().map((header) => [header.column.id, header]));
  return (
    <div className="grid-head" role="row" aria-rowindex={1}>
      <div className="grid-cell is-pinned" role="columnheader" aria-label="Selection" style={{ left: 0 }} />
      {columns.map((column, index) => {
        const isSorted = column.id === sortedBy;
        const isDescending = isSorted && direction === "desc";
        const next = !isSorted ? `${column.id}:asc` : isDescending ? null : `${column.id}:desc`;
        const isSortable = column.field === undefined || !isJsonText(column.field);
        return (
          <div
            key={column.id}
            className={column.className}
            role="columnheader"
            aria-sort={isSorted ? (isDescending ? "descending" : "ascending") : "none"}
            style={column.left === null ? undefined : { left: column.left }}
          >
            {isSortable ? (
              <button type="button" className="grid-sort" title={column.id} onClick={() => onSort(next)}>
                {column.id}
              </button>
            ) : (
              <span className="grid-sort" title={column.id}>
                {column.id}
              </span>
            )}
            {isSorted ? (
              isDescending ? (
                <IconArrowDown size={14} aria-hidden />
              ) : (
                <IconArrowUp size={14} aria-hidden />
              )
            ) : null}
            <ColumnMenu
              column={column}
              table={table}
              isSortable={isSortable}
              isMovable={{ left: canMove(columns, index, -1), right: canMove(columns, index, 1) }}
              onSort={onSort}
              {...summary}
            />
            <span className="grid-resize" aria-hidden onPointerDown={headers.get(column.id)?.getResizeHandler()} />
          </div>
        );
      })}
    </div>
  );
});

function ColumnMenu({
  column: { id, left },
  table,
  isSortable,
  isMovable,
  onSort,
  onSummary,
  hasSummary,
}: Pick<HeadProps, "table" | "onSort" | "onSummary" | "hasSummary"> & {
  column: GridColumn;
  isSortable: boolean;
  isMovable: { left: boolean; right: boolean };
}) {
  const column = table.getColumn(id);
  return (
    <Menu position="bottom-end" shadow="md" withinPortal keepMounted={false}>
      <Menu.Target>
        <button type="button" className="grid-menu" aria-label={`Column ${id}`}>
          <IconDotsVertical size={14} aria-hidden />
        </button>
      </Menu.Target>
      <Menu.Dropdown>
        {isSortable ? (
          <>
            <Menu.Item leftSection={<IconArrowUp size={14} aria-hidden />} onClick={() => onSort(`${id}:asc`)}>
              Sort ascending
            </Menu.Item>
            <Menu.Item leftSection={<IconArrowDown size={14} aria-hidden />} onClick={() => onSort(`${id}:desc`)}>
              Sort descending
            </Menu.Item>
            {hasSummary(id) ? (
              <Menu.Item leftSection={<IconSum size={14} aria-hidden />} onClick={() => onSummary(id)}>
                Summary
              </Menu.Item>
            ) : null}
            <Menu.Divider />
          </>
        ) : null}
        <Menu.Item
          leftSection={left === null ? <IconPin size={14} aria-hidden /> : <IconPinnedOff size={14} aria-hidden />}
          onClick={() => column?.pin(left === null ? "start" : false)}
        >
          {left === null ? "Pin" : "Unpin"}
        </Menu.Item>
        <Menu.Item
          leftSection={<IconArrowLeft size={14} aria-hidden />}
          disabled={!isMovable.left}
          onClick={() => moveColumn(table, id, -1)}
        >
          Move left
        </Menu.Item>
        <Menu.Item
          leftSection={<IconArrowRight size={14} aria-hidden />}
          disabled={!isMovable.right}
          onClick={() => moveColumn(table, id, 1)}
        >
          Move right
        </Menu.Item>
        <Menu.Item
          leftSection={<IconEyeOff size={14} aria-hidden />}
          disabled={id === "id"}
          onClick={() => column?.toggleVisibility(false)}
        >
          Hide
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
