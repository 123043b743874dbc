import { useEffect, useMemo, useRef, useSyncExternalStore } from "react";
import type { Room, RoomPlayer, RoomStatus, Rooms } from "../rooms/types.ts";
import { systemRuntime } from "../runtime.ts";
import { PlatformError } from "../transport/errors.ts";
import { useUserId } from "./provider.ts";

/** Delay before leaving. An unmounted component may return at once: React mounts twice in development, and routes change. */
const LEAVE_AFTER_MS = 250;
/** Delay before an unreachable room is joined again. */
const JOIN_AGAIN_MS = 2_000;

interface RoomSnapshot {
  /** Status of the room. `joining`: for the first time, or while the server is unreachable. `refused`: see `error`. */
  status: RoomStatus | "joining" | "refused";
  error: PlatformError | null;
  shared: Room["shared"];
  mine: Room["mine"];
  players: readonly RoomPlayer[];
}

const JOINING: RoomSnapshot = { status: "joining", error: null, shared: {}, mine: {}, players: [] };

/** Store of a room that stays joined while there are subscribers or pending actions. */
interface RoomStore<Actions> {
  subscribe(listener: () => void): () => void;
  read(): RoomSnapshot;
  act: Room<Actions>["act"];
  on: Room<Actions>["on"];
  /** Joins again after the room was left or refused. */
  join(): void;
}

export function createRoomStore<Actions>(rooms: Rooms<Actions>, id: string): RoomStore<Actions> {
  const listeners = new Set<() => void>();
  const heard = new Set<{ messageType: string; listener: (data: never) => void; stop: () => void }>();
  let joining: Promise<Room<Actions>> | null = null;
  let room: Room<Actions> | null = null;
  let snapshot = JOINING;
  let cancel: () => void = () => {};
  /** Number of pending actions. */
  let acting = 0;

  const changed = (next: RoomSnapshot) => {
    snapshot = next;
    for (const listener of [...listeners]) listener();
  };
  const show = (joined: Room<Actions>) => {
    const { status, error, shared, mine, players } = joined;
    changed({ status, error, shared, mine, players });
  };
  const join = (): Promise<Room<Actions>> => {
    cancel();
    const own = rooms.join(id);
    joining = own;
    own.then(
      (joined) => {
        if (joining !== own) return joined.leave();
        room = joined;
        joined.subscribe(() => room === joined && show(joined));
        for (const entry of heard) entry.stop = joined.on(entry.messageType, entry.listener);
        show(joined);
      },
      (error: unknown) => {
        if (joining !== own) return;
        joining = null;
        const isLost = error instanceof PlatformError && error.code === "network";
        // Any other error is a bug in the program.
        const because = error instanceof PlatformError ? error : null;
        changed({ ...JOINING, status: isLost ? "joining" : "refused", error: because });
        if (isLost && listeners.size > 0) cancel = systemRuntime.after(JOIN_AGAIN_MS, () => void join());
      },
    );
    return own;
  };
  const leave = () => {
    joining = null;
    room?.leave();
    room = null;
    snapshot = JOINING;
  };
  const leaveIfUnused = () => {
    if (listeners.size + acting > 0) return;
    cancel();
    cancel = systemRuntime.after(LEAVE_AFTER_MS, () => acting === 0 && leave());
  };
  return {
    subscribe(listener) {
      cancel();
      listeners.add(listener);
      if (joining === null) join().catch(() => {});
      return () => {
        listeners.delete(listener);
        leaveIfUnused();
      };
    },
    read: () => snapshot,
    // Works without subscribers too, as for a component that sends something when it unmounts.
    async act(...given) {
      acting += 1;
      try {
        return await (await (joining ?? join())).act(...given);
      } finally {
        acting -= 1;
        leaveIfUnused();
      }
    },
    on(messageType, listener) {
      const entry = { messageType, listener, stop: room?.on(messageType, listener) ?? (() => {}) };
      heard.add(entry);
      return () => {
        heard.delete(entry);
        entry.stop();
      };
    },
    join() {
      if (room !== null && room.status !== "left") return;
      leave();
      changed(JOINING);
      join().catch(() => {});
    },
  };
}

export interface RoomResult<Actions> extends RoomSnapshot, Pick<RoomStore<Actions>, "act" | "on" | "join"> {}

const nowhere: RoomStore<never> = {
  subscribe: () => () => {},
  read: () => JOINING,
  act: () => Promise.reject(new PlatformError({ status: 0, code: "invalid", message: "There is no room" })),
  on: () => () => {},
  join: () => {},
};

/**
 * Returns a room: `useRoom(client.rooms("quiz"), id)`. It is joined while a component shows it, and left soon after the last one
 * unmounts. Below a provider it is joined again as the user who signs in. null: no room yet. On a server the status is
 * `joining`, and no connection opens. The functions are stable across renders.
 */
export function useRoom<Actions>(rooms: Rooms<Actions>, id: string | null): RoomResult<Actions> {
  const store = useMemo(() => (id === null ? nowhere : createRoomStore(rooms, id)), [rooms, id]);
  const snapshot = useSyncExternalStore(store.subscribe, store.read, () => JOINING);
  const { act, on, join } = store;
  const userId = useUserId();
  const isUnauthenticated = snapshot.error?.code === "unauthenticated";
  /** Id of the user who was signed in at the join. */
  const joinedAs = useRef(userId);
  useEffect(() => {
    if (userId === null) joinedAs.current = null;
    // Joins again once: a user who is refused stays refused.
    if (!isUnauthenticated || userId === joinedAs.current) return;
    joinedAs.current = userId;
    join();
  }, [userId, isUnauthenticated, join]);
  // Without an id there are no actions of any type.
  return { ...snapshot, act, on, join } as RoomResult<Actions>;
}
