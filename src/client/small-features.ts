// One file, because each of these is so small, or used so seldom, that another request costs more than its bytes.
export { createSending } from "./analytics.ts";
export { createAccount } from "./auth/account.ts";
export { leased } from "./auth/lease.ts";
export { createBroadcast } from "./channels/broadcast.ts";
export { createPresence } from "./channels/presence.ts";
export { cookieStore } from "./cookies.ts";
export { call, openRouteSocket } from "./functions/calls.ts";
export { createExpansions } from "./live/expansions.ts";
export { completePlan, createRepeats } from "./live/special-queries.ts";
export { createPush } from "./push.ts";
export { joinRoom } from "./rooms/room.ts";
export { createOperations } from "./storage/operations.ts";
export { formOf } from "./tables/forms.ts";
export { aggregate, page, pages, search, writeAll } from "./tables/wide-queries.ts";
