// What a page without a build imports from "/client/index.js".
export { createClient } from "../client.ts";
export { memoryStore } from "../store.ts";
export { deleteField, increment } from "../tables/operators.ts";
export { PlatformError } from "../transport/errors.ts";
export { cookieStore } from "./cookies.ts";
