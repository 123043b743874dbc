// One file: a page that opens a socket also calls routes.
export { call } from "./call.ts";
export { openRouteSocket } from "./route-socket.ts";
