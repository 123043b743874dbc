// The exports of "platform" for configs. `scripts/declarations.ts` writes its declarations for editors.
export { AppError, Refusal } from "../../kernel/errors.ts";
export type { JsonObject, JsonValue } from "../../kernel/json/json.ts";
export { allOf, anyOf, field, none, not, some } from "../../kernel/records/filter-group.ts";
export type * from "./app/index.ts";
export { defineConfig } from "./define.ts";
export { json } from "./sections/tables/json-type.ts";
export { twilioSender, webhookSender } from "./senders.ts";
export type { AppOf, HookContextOf, RuleContextOf } from "./typed/access.ts";
export type { DefinedConfig, TypedConfig } from "./typed/config.ts";
export type { ConfigTypes, TypesOf } from "./typed/declared.ts";
export type { FilterOf } from "./typed/filters.ts";
export type { RecordOf } from "./typed/records.ts";
export type * from "./types.ts";
