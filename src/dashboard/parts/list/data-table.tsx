import { Table, type TableProps } from "@mantine/core";
import type { ReactNode } from "react";
import { Wide } from "./list.tsx";

/** Column of a table: its title, and how it shows an item. */
export interface Column<Item> {
  /** Title; absent for buttons, whose column screen readers call "Actions". */
  title?: string;
  show(item: Item, index: number): ReactNode;
  /** Whether the column is numeric: aligned right, with tabular digits. */
  isNumber?: boolean;
  align?: "right";
  width?: number | string;
  /** Width in pixels beyond which content is cut. */
  maxWidth?: number;
  className?: string;
  font?: "monospace";
}

/** Table of items, one per line; it scrolls sideways if the screen is narrower than `minWidth` pixels. */
export function DataTable<Item>({
  label,
  items,
  keyOf,
  columns,
  minWidth,
  ...props
}: Omit<TableProps, "data"> & {
  /** Accessible name. */
  label: string;
  items: readonly Item[];
  keyOf(item: Item, index: number): string | number;
  columns: readonly Column<Item>[];
  minWidth?: number;
}) {
  const table = (
    <Table {...props} aria-label={label}>
      <Table.Thead>
        <Table.Tr>
          {columns.map(({ title, width, align, isNumber = false }) => (
            <Table.Th
              key={title ?? ""}
              {...(title === undefined ? { "aria-label": "Actions" } : {})}
              {...(width === undefined ? {} : { w: width })}
              {...(isNumber ? { ta: "right" } : align === undefined || title === undefined ? {} : { ta: align })}
            >
              {title}
            </Table.Th>
          ))}
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {items.map((item, index) => (
          <Table.Tr key={keyOf(item, index)}>
            {columns.map(({ title, show, isNumber = false, align, maxWidth, className, font }) => (
              <Table.Td
                key={title ?? ""}
                className={isNumber ? "number" : className}
                {...(isNumber ? { ta: "right" } : align === undefined ? {} : { ta: align })}
                {...(maxWidth === undefined ? {} : { maw: maxWidth })}
                {...(font === undefined ? {} : { ff: font })}
              >
                {show(item, index)}
              </Table.Td>
            ))}
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
  return minWidth === undefined ? table : <Wide minWidth={minWidth}>{table}</Wide>;
}
