import { type Static, Type } from "typebox";
import { isIsoDateTime } from "../../../kernel/time/iso-datetime.ts";
import { serviceKeyProblem } from "../secrets/service-key-text.ts";
import { nameProblem } from "../shape/names.ts";
import { describe, isPlainObject } from "../shape/report.ts";
import { list, named, refined, related, secretText, textWith } from "../shape/schema.ts";
import { addressRange } from "./network/proxies.ts";

/** The actions of each area's scopes. Kind and name may be any text. */
const ACTIONS: Readonly<Record<string, readonly string[]>> = {
  storage: ["read", "write", "delete"],
  db: ["read", "insert", "update", "delete"],
  auth: ["read", "write"],
  kv: ["read", "write"],
  d1: [],
  vectorize: ["read", "write"],
  push: ["send", "read", "write"],
  realtime: ["broadcast", "read"],
  analytics: ["read", "write"],
  jobs: ["read", "write"],
  system: ["read"],
  audit: ["read"],
  functions: ["call"],
  rooms: ["read", "write"],
  backups: ["read", "write", "download"],
  mcp: ["read", "write"],
};

/** Describes the problem of a scope; null when it is well-formed. */
function scopeProblem(scope: string): string | null {
  const parts = scope.split(":");
  const [area = "", kind, name, action = ""] = parts;
  if (parts.length !== 4 || kind === "" || name === "") {
    return `"${scope}" must have four parts, as in "storage:bucket:photos:read"`;
  }
  if (area === "*") return null;
  const actions = Object.hasOwn(ACTIONS, area) ? ACTIONS[area] : undefined;
  if (actions === undefined) return `"${area}" is not one of ${Object.keys(ACTIONS).join(", ")}`;
  if (action === "*" || actions.includes(action)) return null;
  return `"${action}" is not an action of ${area}: ${[...actions, "*"].join(", ")}`;
}

const keyText = refined(secretText(), (value, report) => {
  const problem = serviceKeyProblem(value);
  if (problem !== null) report.say(problem);
});

const expiry = textWith((value) =>
  isIsoDateTime(value) ? null : `must be an ISO 8601 date and time, got ${describe(value)}`,
);

const ServiceKey = Type.Object({
  key: keyText,
  /** The scopes, of four parts each, `*` for any. Absent: every right. */
  scopes: Type.Optional(list(textWith(scopeProblem), { minItems: 0 })),
  /** The expiry in ISO 8601. */
  expiresAt: Type.Optional(expiry),
  /** The allowed addresses or CIDR ranges. */
  ips: Type.Optional(list(addressRange())),
});
export interface ServiceKeyConfig extends Static<typeof ServiceKey> {}

const keyNameProblem = (name: string): string | null =>
  name === "root" ? "is the name of the data directory's own key" : nameProblem(name);

export const ServiceKeys = related(named(Type.Unsafe<ServiceKeyConfig>(ServiceKey), keyNameProblem), (keys, report) => {
  const nameByKey = new Map<unknown, string>();
  for (const [name, entry] of Object.entries(keys)) {
    const key: unknown = isPlainObject(entry) ? entry["key"] : undefined;
    if (key === undefined) continue;
    const twin = nameByKey.get(key);
    if (twin !== undefined) report.at(name).at("key").say(`is also the key of ${twin}`);
    nameByKey.set(key, name);
  }
});
