import { Button, Group, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useSyncExternalStore } from "react";
import type { RequestOptions } from "../../client/transport/types.ts";
import { messageOf } from "../api/server.ts";
import { type Begun, endsWithSession } from "../api/session.tsx";

/** Time in which a deletion can be undone. */
const UNDO_MS = 10_000;

/** Options of a request: none, or those with which it outlives the page. */
export type Sending = Pick<RequestOptions, "fetch">;

export interface Deletion {
  /** Names to hide meanwhile, such as `files/BUCKET/KEY`, or the ids of records. */
  names: readonly string[];
  /** Message of the deletion, such as `2 files deleted`. */
  message: string;
  /** Sends the requests. If the page is being left, they all start at once. */
  run(sending: Sending): Promise<unknown>;
  /** Reloads what is shown. */
  done(): void;
}

// Deletions are delayed: items are hidden at once and deleted after ten seconds, as a completed deletion could not be undone.

const pending = new Map<string, { deletion: Deletion; timer: ReturnType<typeof setTimeout> }>();
const listeners = new Set<() => void>();
let hidden: ReadonlySet<string> = new Set();

function changed(): void {
  hidden = new Set([...pending.values()].flatMap(({ deletion }) => deletion.names));
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Returns the names of items about to be deleted. */
export const useHidden = (): ReadonlySet<string> => useSyncExternalStore(subscribe, () => hidden);

async function finish(id: string): Promise<void> {
  const one = pending.get(id);
  if (one === undefined) return;
  notifications.hide(id);
  try {
    await one.deletion.run({});
  } catch (error) {
    notifications.show({ color: "red", title: "Not deleted", message: messageOf(error) });
  }
  pending.delete(id);
  one.deletion.done();
  changed();
}

/** Runs requests in sequence; all at once if the page is being left. */
export async function inTurn({ fetch }: Sending, requests: readonly (() => Promise<unknown>)[]): Promise<void> {
  if (fetch !== undefined) {
    await Promise.all(requests.map((request) => request()));
    return;
  }
  for (const request of requests) await request();
}

/** Hides items, and deletes them unless the deletion is undone. */
export function deleteSoon(deletion: Deletion): void {
  const id = `deletion-${crypto.getRandomValues(new Uint32Array(2)).join("-")}`;
  const undo = (): void => {
    clearTimeout(pending.get(id)?.timer);
    pending.delete(id);
    notifications.hide(id);
    changed();
  };
  pending.set(id, { deletion, timer: setTimeout(() => void finish(id), UNDO_MS) });
  addEventListener("pagehide", finishAll);
  endsWithSession(DELETIONS);
  changed();
  notifications.show({
    id,
    autoClose: UNDO_MS,
    withCloseButton: false,
    message: (
      <Group justify="space-between" wrap="nowrap">
        <Text size="sm">{deletion.message}</Text>
        <Button size="compact-sm" variant="default" onClick={undo}>
          Undo
        </Button>
      </Group>
    ),
  });
}

/** `fetch` whose requests outlive the page. */
const keptAlive: typeof fetch = (address, init) => fetch(address, { ...init, keepalive: true });

const DELETIONS: Begun = {
  finish: () =>
    Promise.all(
      Array.from(pending, ([id, { timer }]) => {
        clearTimeout(timer);
        return finish(id);
      }),
    ),
  forget() {
    for (const [id, { timer }] of pending) {
      clearTimeout(timer);
      notifications.hide(id);
      notifications.show({ color: "red", title: "Not deleted", message: "The session ended before" });
    }
    pending.clear();
    changed();
  },
};

function finishAll(): void {
  for (const { deletion } of pending.values()) void deletion.run({ fetch: keptAlive });
  pending.clear();
}
