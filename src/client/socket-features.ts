// One file for what needs the socket or a database: presence, broadcasts and rooms share most of their code.
export { createBroadcast } from "./channels/broadcast.ts";
export { createPresence } from "./channels/presence.ts";
export { openOffline } from "./offline/offline.ts";
export { joinRoom } from "./rooms/room.ts";
