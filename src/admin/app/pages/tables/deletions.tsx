import { Button, Group, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useSyncExternalStore } from "react";
import type { Administrator } from "../../../../client/admin/administrator.ts";
import type { RequestOptions } from "../../../../client/transport/types.ts";
import { messageOf } from "../../api/failure.ts";
import { BATCH_MAX, UNDO_MS } from "../../limits.ts";
import { pathOf, type TableAddress } from "./address.ts";
import { reloadRows } from "./rows.ts";

interface Pending {
  /** As whom it is deleted: with View as, the rules of that user are asked. */
  server: Administrator;
  address: TableAddress;
  ids: readonly string[];
  timer: ReturnType<typeof setTimeout>;
}

// Deleted records are hidden at once and deleted ten seconds later: what was deleted for good could not be put back with
// everything that refers to it.

const pending = new Map<string, Pending>();
const listeners = new Set<() => void>();
let hidden: ReadonlySet<string> = new Set();

function changed(): void {
  hidden = new Set([...pending.values()].flatMap(({ ids }) => ids));
  for (const listener of listeners) listener();
}

/** The ids of records that are about to be deleted. */
export const useHidden = (): ReadonlySet<string> =>
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => hidden,
  );

/** A page that goes away sends what it has begun. */
const keptAlive: typeof fetch = (address, init) => fetch(address, { ...init, keepalive: true });

/** Each batch is sent when its promise is asked for. */
const batchesOf = ({ server, address, ids }: Pending, options: Pick<RequestOptions, "fetch"> = {}) =>
  Array.from({ length: Math.ceil(ids.length / BATCH_MAX) }, (_, index) => () => {
    const deletes = ids.slice(index * BATCH_MAX, (index + 1) * BATCH_MAX);
    return server.request("POST", `${pathOf(address)}/batch`, { ...options, body: { deletes }, idempotent: true });
  });

async function finish(key: string): Promise<void> {
  const one = pending.get(key);
  if (one === undefined) return;
  notifications.hide(key);
  try {
    for (const send of batchesOf(one)) await send();
  } catch (error) {
    notifications.show({ color: "red", title: "Nothing was deleted", message: messageOf(error) });
  }
  pending.delete(key);
  reloadRows(one.address);
  changed();
}

/** Hides these records, and deletes them unless it is undone. */
export function deleteSoon(server: Administrator, address: TableAddress, ids: readonly string[]): void {
  const key = crypto.getRandomValues(new Uint32Array(2)).join("-");
  const undo = (): void => {
    clearTimeout(pending.get(key)?.timer);
    pending.delete(key);
    notifications.hide(key);
    changed();
  };
  pending.set(key, { server, address, ids, timer: setTimeout(() => void finish(key), UNDO_MS) });
  changed();
  const count = ids.length === 1 ? "One record" : `${ids.length} records`;
  notifications.show({
    id: key,
    autoClose: UNDO_MS,
    withCloseButton: false,
    message: (
      <Group justify="space-between" wrap="nowrap">
        <Text size="sm">{count} deleted</Text>
        <Button size="compact-sm" variant="default" onClick={undo}>
          Undo
        </Button>
      </Group>
    ),
  });
}

addEventListener("pagehide", () => {
  for (const one of pending.values()) for (const send of batchesOf(one, { fetch: keptAlive })) void send();
  pending.clear();
});
