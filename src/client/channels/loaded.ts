// One file for a page that uses either, as most use both.
export { createBroadcast } from "./broadcast.ts";
export { createPresence } from "./presence.ts";
