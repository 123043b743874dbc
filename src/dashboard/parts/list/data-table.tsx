import { Table, type TableProps } from "@mantine/core";
import type { ReactNode } from "react";
import { Wide } from "./list.tsx";

/** A column of a table: its title, and what it shows of an item. */
export interface Column<Item> {
  /** Absent over buttons: the column is named "Actions" for those who do not see it. */
  title?: string;
  show(item: Item, index: number): ReactNode;
  /** Numbers stand on the right, with digits of one width. */
  isNumber?: boolean;
  align?: "right";
  width?: number | string;
  /** Pixels, beyond which what is shown is cut. */
  maxWidth?: number;
  className?: string;
  font?: "monospace";
}

/** A table of items, one a line; scrolled sideways where the screen is narrower than `minWidth` pixels. */
export function DataTable<Item>({
  label,
  items,
  keyOf,
  columns,
  minWidth,
  ...props
}: Omit<TableProps, "data"> & {
  /** The accessible name. */
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
