import type { ReadAccess, TableAddress } from "../../../access/table-door.ts";
import { ASKER_MEMBERS_MAX } from "../limits.ts";
import type { Asker } from "./model.ts";

interface TableAskers {
  /** By what the rule sees of the user. */
  readonly byAuth: Map<string, Asker[]>;
  /** Those that return filters without having looked anything up. */
  readonly unwatched: Set<Asker>;
  /** Those whose answers may not be of now. */
  readonly pending: Set<Asker>;
  subscriptionCount: number;
}

/** The askers of each table. */
export interface AskedTables {
  /** null: it has none. */
  find(address: TableAddress): Pick<TableAskers, "unwatched" | "pending"> | null;
  /** One with room for another subscription; null: there is none. */
  withRoom(address: TableAddress, auth: string): Asker | null;
  /** Call it after each answer, the first one too. */
  classify(asker: Asker): void;
  /** Those whose answers may not be of now. The same set while the table has askers. */
  pendingOf(address: TableAddress): Set<Asker>;
  /** The subscriptions of its askers. */
  subscriptionCount(address: TableAddress): number;
  /** A subscription of one of them has begun (1), or ended (-1). */
  count(address: TableAddress, change: 1 | -1): void;
  delete(asker: Asker): void;
}

export function createAskedTables(): AskedTables {
  const tables = new Map<string, TableAskers>();
  const tableOf = (address: TableAddress): TableAskers => {
    const key = keyOf(address);
    const known = tables.get(key) ?? {
      byAuth: new Map(),
      unwatched: new Set(),
      pending: new Set(),
      subscriptionCount: 0,
    };
    tables.set(key, known);
    return known;
  };
  return {
    find: (address) => tables.get(keyOf(address)) ?? null,
    withRoom(address, auth) {
      const askers = tables.get(keyOf(address))?.byAuth.get(auth) ?? [];
      return askers.find(({ members }) => members.size < ASKER_MEMBERS_MAX) ?? null;
    },
    classify(asker) {
      const { byAuth, unwatched } = tableOf(asker.channel.address);
      const equal = byAuth.get(asker.auth);
      if (equal === undefined) byAuth.set(asker.auth, [asker]);
      else if (!equal.includes(asker)) equal.push(asker);
      if (isFilter(asker.access) && !asker.right.hasLooked) unwatched.add(asker);
      else unwatched.delete(asker);
    },
    subscriptionCount: (address) => tables.get(keyOf(address))?.subscriptionCount ?? 0,
    count(address, change) {
      const askers = tables.get(keyOf(address));
      if (askers !== undefined) askers.subscriptionCount += change;
    },
    pendingOf: (address) => tableOf(address).pending,
    delete(asker) {
      const key = keyOf(asker.channel.address);
      const askers = tables.get(key);
      if (askers === undefined) return;
      askers.unwatched.delete(asker);
      askers.pending.delete(asker);
      const equal = (askers.byAuth.get(asker.auth) ?? []).filter((other) => other !== asker);
      if (equal.length > 0) askers.byAuth.set(asker.auth, equal);
      else askers.byAuth.delete(asker.auth);
      if (askers.byAuth.size === 0) tables.delete(key);
    },
  };
}

// Neither a namespace, nor an instance's id, nor a table has a slash.
const keyOf = ({ namespace, instanceId, table }: TableAddress): string => `${namespace}/${instanceId ?? ""}/${table}`;

export const isFilter = (access: ReadAccess): boolean =>
  access.kind === "filter" || (access.kind === "all" && access.saidBy === "filter");
