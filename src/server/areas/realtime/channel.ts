import type { RelatedFilters, TableAddress, TableDoor } from "../../access/table-door.ts";
import { CHANNEL_LENGTH_MAX } from "./limits.ts";

/** A channel's name, parsed. [RT13] */
export type Channel =
  | {
      kind: "table";
      name: string;
      address: TableAddress;
      /** Id of the record; null for the whole table. */
      docId: string | null;
      /** Filters with relations, which are part of the right to it; absent or null for none. */
      related?: ChannelFilters | null;
    }
  | { kind: "presence"; name: string }
  | { kind: "broadcast"; name: string };

/** Filters with relations. `text` is equal for equal ones. */
export interface ChannelFilters extends RelatedFilters {
  text: string;
  /** Number of their relations. */
  count: number;
}

export type TableChannel = Channel & { kind: "table" };

/**
 * Parses a channel's name. null: no known pattern, too long, an undeclared namespace or table, or not an instance's id. [RT13]
 */
export function parseChannel(
  name: string,
  tables: Pick<TableDoor, "find" | "isDynamic" | "isInstanceId">,
): Channel | null {
  if (name.length > CHANNEL_LENGTH_MAX || !name.isWellFormed()) return null;
  if (isNamed(name, "presence:")) return { kind: "presence", name };
  if (isNamed(name, "broadcast:")) return { kind: "broadcast", name };
  const [prefix, namespace = "", second = "", ...rest] = name.split(":");
  if (prefix !== "realtime") return null;
  const isDynamic = tables.isDynamic(namespace);
  if (isDynamic === null) return null;
  if (isDynamic) {
    const [table = "", ...beyond] = rest;
    if (beyond.length > 0 || !tables.isInstanceId(second) || tables.find(namespace, table) === null) return null;
    return { kind: "table", name, address: { namespace, instanceId: second, table }, docId: null };
  }
  const docId = rest.length === 0 ? null : rest.join(":");
  if (docId === "" || tables.find(namespace, second) === null) return null;
  return { kind: "table", name, address: { namespace, instanceId: null, table: second }, docId };
}

const isNamed = (name: string, prefix: string): boolean => name.startsWith(prefix) && name.length > prefix.length;

/** Whether the name is that of a broadcast channel. [RT35] */
export const isBroadcastChannel = (name: string): boolean =>
  isNamed(name, "broadcast:") && name.length <= CHANNEL_LENGTH_MAX;
