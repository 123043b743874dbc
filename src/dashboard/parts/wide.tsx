import { Table } from "@mantine/core";
import type { ReactNode } from "react";

/** A table that is scrolled sideways where the screen is narrower than `minWidth` pixels, with the keyboard too. */
export function Wide({ minWidth, children }: { minWidth: number; children: ReactNode }) {
  return (
    <Table.ScrollContainer className="wide" minWidth={minWidth} scrollAreaProps={{ viewportProps: { tabIndex: 0 } }}>
      {children}
    </Table.ScrollContainer>
  );
}

/** What opens below a line of such a table: no wider than the screen, and in its place while the table is scrolled. */
export const WideDetail = ({ children }: { children: ReactNode }) => <div className="wide-detail">{children}</div>;
