import type { ClientContext } from "../context.ts";
import type { Rooms } from "./types.ts";

/** What a page without rooms loads of them. */
export const createRooms = (context: ClientContext, name: string): Rooms => ({
  name,
  join: async (id) => (await import("../channels/loaded.ts")).joinRoom(context, name, id),
});
