import type { LeaseWatch } from "./leases.ts";
import type { GroupRow, NodeRow, Vacancy } from "./statements.ts";

/**
 * Says whether a node may take the group, and what the takeover has to find then. null: the group has an owner, it is stopped, or another live node has more of the log.
 */
export function vacancyOf(
  seen: { group: GroupRow; nodes: readonly NodeRow[] },
  self: { node: string; known: number },
  watch: LeaseWatch,
): Vacancy | null {
  const { group, nodes } = seen;
  if (group.isStopped) return null;
  const reach = Math.max(self.known, group.position);
  const isBehind = nodes.some((row) => row.node !== self.node && row.known > reach && !watch.isOver(row));
  if (isBehind) return null;
  const { epoch, owner, incarnation } = group;
  const row = nodes.find((one) => one.node === owner && one.incarnation === incarnation && one.acting === epoch);
  if (row === undefined) return { epoch, owner, incarnation, counter: null };
  if (!watch.isOver(row)) return null;
  return { epoch, owner, incarnation, counter: row.counter };
}
