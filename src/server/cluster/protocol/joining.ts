import type { LeaseWatch } from "./leases.ts";
import type { NodeRow, Statement } from "./statements.ts";

/** Returns how a process takes its place among the nodes: when the lease of the one that had it is over. null: not yet, or it has it. */
export function joinOf(
  rows: readonly NodeRow[],
  { node, incarnation }: { node: string; incarnation: string },
  watch: LeaseWatch,
): Statement | null {
  const row = rows.find((one) => one.node === node);
  if (row === undefined) return { kind: "join", node, incarnation, replaces: null };
  if (row.incarnation === incarnation || !watch.isOver(row)) return null;
  return { kind: "join", node, incarnation, replaces: { node, incarnation: row.incarnation, counter: row.counter } };
}
