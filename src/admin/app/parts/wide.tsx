import { Table } from "@mantine/core";
import type { ReactNode } from "react";

/** A table that is scrolled sideways where the screen is narrower than `minWidth` pixels, with the keyboard too. */
export function Wide({ minWidth, children }: { minWidth: number; children: ReactNode }) {
  return (
    <Table.ScrollContainer minWidth={minWidth} scrollAreaProps={{ viewportProps: { tabIndex: 0 } }}>
      {children}
    </Table.ScrollContainer>
  );
}
