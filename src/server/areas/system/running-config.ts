import type { JsonValue } from "../../../kernel/json/json.ts";
import { AnyObject } from "../../../kernel/schema/types.ts";
import { requireServiceKey } from "../../access/service-key-right.ts";
import type { PlatformConfig } from "../../config/types.ts";
import { type Endpoint, endpoint } from "../../http/endpoint.ts";
import { JsonText } from "../../http/reply.ts";

/** Members whose texts are no secrets. Every other text is hidden, so that a secret of a new option is. */
const SHOWN = new Set([
  ...["schedule", "timezone", "type", "metric", "provider", "publicUrl", "defaultLanguage"],
  ...["references", "table", "column", "onDelete", "onUpdate", "fields", "fts", "events", "actions", "bucket", "auth"],
  ...["scopes", "expiresAt", "origin", "methods", "trustProxy", "redirectUrls", "domains", "enum", "folder"],
]);
const HIDDEN = "[hidden]";

/** Numbers, switches and names as they are; functions and texts that may be secrets are named only. */
function shown(value: unknown, member: string): JsonValue {
  if (typeof value === "number" || typeof value === "boolean" || value === null) return value;
  if (typeof value === "string") return SHOWN.has(member) ? value : HIDDEN;
  if (typeof value === "function") return "[function]";
  if (Array.isArray(value)) return value.map((entry) => shown(entry, member));
  if (typeof value !== "object") return null;
  const prototype: unknown = Object.getPrototypeOf(value);
  // Schemas of routes and jobs, regular expressions and instances are code.
  if (prototype !== null && prototype !== Object.prototype) return "[object]";
  return Object.fromEntries(Object.entries(value).map(([name, own]) => [name, shown(own, name)]));
}

export function configEndpoint(config: PlatformConfig): Endpoint {
  let text: string | null = null;
  return endpoint(
    "GET /api/admin/config",
    {
      tag: "Administration",
      summary: "Get the config as it runs",
      description:
        "Numbers, switches and names; `[hidden]` in place of texts that may be secrets, `[function]` of code.",
      caller: "serviceKey",
      place: "none",
      answers: { 200: AnyObject },
    },
    ({ principal, query }) => {
      requireServiceKey(principal, ["system", "*", "*", "read"]);
      query();
      text ??= JSON.stringify(shown(config, ""));
      return new JsonText(text);
    },
  );
}
