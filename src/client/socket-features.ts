// One file for features that use the socket: presence, broadcasts and rooms share most of their code.

export { createBroadcast } from "./channels/broadcast.ts";
export { createPresence } from "./channels/presence.ts";
export { joinRoom } from "./rooms/room.ts";
