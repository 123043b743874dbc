// One file for what talks over the socket: presence, broadcasts and rooms have most of their code in common.

export { createBroadcast } from "./channels/broadcast.ts";
export { createPresence } from "./channels/presence.ts";
export { joinRoom } from "./rooms/room.ts";
