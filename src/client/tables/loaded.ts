// One file for what few pages ask of tables: both parts are small.
export { createExpansions } from "../expand/expansions.ts";
export { aggregate, search, writeAll } from "./wide-queries.ts";
