// Everything that a config can import from "platform". `scripts/declarations.ts` writes its declarations for editors.
export { AppError, Refusal } from "../kernel/errors.ts";
export type { JsonObject, JsonValue } from "../kernel/json/json.ts";
export type * from "./app/index.ts";
export { defineConfig, type RecordOf, type TypedConfig } from "./define.ts";
export type * from "./types.ts";
