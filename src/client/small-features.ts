// biome-ignore-all assist/source/organizeImports: in this order it is smaller, zipped.
// One file, because each of these is so small, or used so seldom, that another request costs more than its bytes.
export { createAccount } from "./auth/account.ts";
export { call, openRouteSocket } from "./functions/calls.ts";
export { cookieStore } from "./cookies.ts";
export { leased } from "./auth/lease.ts";
export { createPresence } from "./channels/presence.ts";
export { createPush } from "./push.ts";
export { createBroadcast } from "./channels/broadcast.ts";
export { createSending } from "./analytics.ts";
export { createExpansions } from "./live/expansions.ts";
export { joinRoom } from "./rooms/room.ts";
export { completePlan, createRepeats } from "./live/special-queries.ts";
export { createOperations } from "./storage/operations.ts";
export { formOf } from "./tables/forms.ts";
export { aggregate, page, pages, search, writeAll } from "./tables/wide-queries.ts";
