// One file, because each of these is so small that another request costs more than its bytes.
export { createSending } from "./analytics.ts";
export { leased } from "./auth/lease.ts";
export { cookieStore } from "./cookies.ts";
export { createExpansions } from "./live/expansions.ts";
export { createPush } from "./push.ts";
export { aggregate, page, search, writeAll } from "./tables/wide-queries.ts";
