import { memo } from "react";
import { referenceOf, severalOf } from "../../../api/resources.ts";
import { IconExternalLink } from "../../../parts/icons.tsx";
import type { TableAddress } from "../address.ts";
import type { Row } from "../rows.ts";
import { SHOWN_MAX, type TitleOf } from "../titles.ts";
import { cellText, MARKS, Marked, shortened } from "./cell-text.tsx";
import type { GridColumn } from "./columns.ts";
import { CellEditor } from "./editor.tsx";

export const ROW_PX = 35;

/** Actions of rows, one object for all of them, so that a row renders again only when it changes. */
export interface RowActions {
  toggle(id: string): void;
  save(row: Row, field: string, value: unknown): Promise<void>;
  endEditing(): void;
}

interface RowProps {
  address: TableAddress;
  columns: readonly GridColumn[];
  actions: RowActions;
  titleOf: TitleOf;
  /** Row; undefined: not loaded yet. */
  row: Row | undefined;
  index: number;
  /** Index of the focused column; -1: none. */
  focusedColumn: number;
  editingColumn: number;
  isReadOnly: boolean;
  isSelected: boolean;
  isFlashing: boolean;
  isHidden: boolean;
}

/** Whether a cell is edited in place. Files are in the record's form. */
export const canEdit = (column: GridColumn | undefined): boolean =>
  column?.field !== undefined && !column.field.generated && column.id !== "id" && column.field.type !== "file";

/** One row. The grid handles its clicks and keys. */
export const GridRow = memo(function GridRow({ address, columns, actions, titleOf, row, index, ...state }: RowProps) {
  const { focusedColumn, editingColumn, isReadOnly, isSelected, isFlashing, isHidden } = state;
  const classes = [
    "grid-row",
    isFlashing ? "is-flashing" : "",
    isHidden ? "is-hidden" : "",
    editingColumn === -1 ? "" : "is-edited",
  ];
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      aria-selected={isSelected}
      aria-busy={row === undefined}
      className={classes.join(" ")}
      style={{ transform: `translateY(${index * ROW_PX}px)` }}
    >
      <div className="grid-cell is-pinned" role="gridcell" style={CHECK_STYLE}>
        {row === undefined ? null : (
          <input
            type="checkbox"
            className="grid-check"
            tabIndex={-1}
            aria-label={`Select ${row.id}`}
            checked={isSelected}
            onChange={() => actions.toggle(row.id)}
          />
        )}
      </div>
      {columns.map((column, at) => {
        const isEditing = at === editingColumn && row !== undefined && canEdit(column);
        return (
          <div
            key={column.id}
            role="gridcell"
            tabIndex={at === focusedColumn ? 0 : -1}
            data-row={index}
            data-column={at}
            aria-readonly={isReadOnly || !canEdit(column)}
            className={isEditing ? `${column.className} is-editing` : column.className}
            dir={isEditing ? undefined : column.dir}
            style={column.left === null ? undefined : { left: column.left }}
          >
            {isEditing && column.field !== undefined ? (
              <CellEditor
                address={address}
                name={column.id}
                field={column.field}
                value={row[column.id]}
                save={(next) => actions.save(row, column.id, next)}
                close={actions.endEditing}
              />
            ) : row === undefined ? null : (
              <CellContent column={column} row={row} titleOf={titleOf} />
            )}
          </div>
        );
      })}
    </div>
  );
});

const CHECK_STYLE = { left: 0 };

function CellContent({ column, row, titleOf }: { column: GridColumn; row: Row; titleOf: TitleOf }) {
  const value = row[column.id];
  if (value === null || value === undefined) return <span className="is-null">–</span>;
  const marked = row.highlights?.[column.id];
  const text = marked?.includes(MARKS.pre) === true ? <Marked text={marked} /> : cellText(value, column.field);
  if (severalOf(column.field) !== undefined && Array.isArray(value)) {
    const titles = value.slice(0, SHOWN_MAX).map((id) => titleOf(column.id, String(id)) ?? String(id));
    const more = value.length > SHOWN_MAX ? [`+${value.length - SHOWN_MAX}`] : [];
    return <span title={shortened(value.join(", "))}>{shortened([...titles, ...more].join(", "))}</span>;
  }
  const references = referenceOf(column.field);
  // The cell shows local time; the stored text is UTC.
  if (column.field?.type === "datetime" && typeof value === "string") return <span title={value}>{text}</span>;
  if (references === undefined) return text;
  const title = titleOf(column.id, String(value));
  return (
    <>
      <span className="grid-follow" title={`Open in ${references.table}`} data-follow aria-hidden>
        <IconExternalLink size={14} aria-hidden />
      </span>
      {title === undefined ? text : <span title={String(value)}>{title}</span>}
    </>
  );
}
