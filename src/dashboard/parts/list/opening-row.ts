import type { MouseEvent } from "react";

const CONTROLS = "a, button, input, label, select, textarea";
const OPENER = "a[href], button[aria-expanded]";

/** A click anywhere in a row is one on the link or button that opens it, by which the keyboard opens it. */
function openRow({ currentTarget, target }: MouseEvent<HTMLTableRowElement>): void {
  if (!(target instanceof Element) || target.closest(CONTROLS) !== null) return;
  // Who marks a text to copy it opens nothing.
  if (getSelection()?.isCollapsed === false) return;
  currentTarget.querySelector<HTMLElement>(OPENER)?.click();
}

/** Props of a row of a table that opens by a click. */
export const OPENING_ROW = { onClick: openRow, className: "opening-row" } as const;
