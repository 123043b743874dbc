import { useEffect, useMemo, useRef, useSyncExternalStore } from "react";
import type { Rooms } from "../rooms/types.ts";
import { PlatformError } from "../transport/errors.ts";
import { useUserId } from "./provider.ts";
import { createRoomStore, JOINING, type RoomSnapshot, type RoomStore } from "./room-store.ts";

export interface RoomResult<Actions> extends RoomSnapshot, Pick<RoomStore<Actions>, "act" | "on" | "join"> {}

const nowhere: RoomStore<never> = {
  subscribe: () => () => {},
  read: () => JOINING,
  act: () => Promise.reject(new PlatformError({ status: 0, code: "invalid", message: "There is no room" })),
  on: () => () => {},
  join: () => {},
};

/**
 * A room: `useRoom(client.rooms("quiz"), id)`. It is joined while a component shows it, and left soon after the last one is gone.
 * Below a provider it is joined again as whoever signs in. null: none yet. On a server it is `joining`, and nothing is opened. The
 * functions are the same in each render.
 */
export function useRoom<Actions>(rooms: Rooms<Actions>, id: string | null): RoomResult<Actions> {
  const store = useMemo(() => (id === null ? nowhere : createRoomStore(rooms, id)), [rooms, id]);
  const snapshot = useSyncExternalStore(store.subscribe, store.read, () => JOINING);
  const { act, on, join } = store;
  const userId = useUserId();
  const isUnauthenticated = snapshot.error?.code === "unauthenticated";
  /** Who was signed in when the room was joined. */
  const joinedAs = useRef(userId);
  useEffect(() => {
    if (userId === null) joinedAs.current = null;
    // Once: whoever is refused stays so.
    if (!isUnauthenticated || userId === joinedAs.current) return;
    joinedAs.current = userId;
    join();
  }, [userId, isUnauthenticated, join]);
  // Without an id there are no actions, whatever they are.
  return { ...snapshot, act, on, join } as RoomResult<Actions>;
}
