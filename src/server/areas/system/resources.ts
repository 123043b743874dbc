import { type Static, Type } from "typebox";
import type { Millis } from "../../../kernel/clock.ts";
import { nullable } from "../../../kernel/schema/types.ts";
import { isoTime } from "../../../kernel/time/iso-datetime.ts";
import type { Principal } from "../../access/principal.ts";
import { configWarnings } from "../../config/loading/warnings.ts";
import type { BucketConfig, NamespaceConfig, PlatformConfig } from "../../config/types.ts";
import { type Endpoint, endpoint } from "../../http/endpoint.ts";
import { describeSchema, SchemaDescription } from "./schema.ts";

const Names = Type.Array(Type.String());
const Amount = nullable(Type.Integer());

const Resources = Type.Object(
  {
    namespaces: SchemaDescription.properties.namespaces,
    rules: Type.Record(Type.String(), Type.Record(Type.String(), Type.Record(Type.String(), Type.String())), {
      description:
        "The access rules of tables as source text, by namespace, table and action; only for `system:*:*:read`",
    }),
    buckets: Type.Array(Type.Object({ name: Type.String(), external: Type.Boolean() })),
    quotas: Type.Object(
      {
        buckets: Type.Record(Type.String(), Type.Object({ total: Amount, perUser: Amount })),
        namespaces: Type.Record(Type.String(), Type.Object({ perInstance: Amount, instancesPerUser: Amount })),
      },
      { description: "Of the buckets and namespaces above that have one: bytes, and instances; null: as many as fit" },
    ),
    kv: Names,
    d1: Names,
    vectorize: Type.Array(Type.Object({ name: Type.String(), dimensions: Type.Integer(), metric: Type.String() })),
    rooms: Names,
    jobs: Names,
    webhooks: Names,
    cron: Type.Array(Type.Object({ name: Type.String(), schedule: Type.String(), timezone: nullable(Type.String()) })),
    serviceKeys: Type.Array(
      Type.Object({
        name: Type.String(),
        scopes: nullable(Names),
        expiresAt: nullable(Type.String()),
        ips: nullable(Names),
        lastUsedAt: nullable(Type.String({ description: "Since the start of the server; null: not since then" })),
      }),
      { description: "Without the keys themselves; only for `system:*:*:read`" },
    ),
    warnings: Type.Array(Type.Object({ path: Type.String(), message: Type.String() }), {
      description: "What `platform check` warns of; only for `system:*:*:read`",
    }),
  },
  { description: "What the config declares, as far as the key's scopes name it" },
);
type Resources = Static<typeof Resources>;

interface Described {
  config: PlatformConfig;
  /** Returns when the key with this name was last used; null if not since the start. */
  keyUse: (name: string) => Millis | null;
}

/** Describes the parts of the config that this key may see. Every member is copied by name, so that no secret leaks by accident. */
function describe(
  { config, keyUse }: Described,
  warnings: () => Resources["warnings"],
  may: (...right: [string, string, string, string]) => boolean,
): Resources {
  const maySystem = may("system", "*", "*", "read");
  const mayAny = (area: string, kind: string, name: string, actions: readonly string[]): boolean =>
    actions.some((action) => may(area, kind, name, action));
  const named = (section: object | undefined, isShown: (name: string) => boolean): string[] =>
    Object.keys(section ?? {}).filter(isShown);
  const tables = (namespace: string, table: string): boolean =>
    mayAny("db", namespace, table, ["read", "insert", "update", "delete"]);
  const jobs = (name: string): boolean => mayAny("jobs", "*", name, ["read", "write"]);
  const namespaces = shownTables(config, tables, maySystem);
  const buckets = Object.entries(config.storage?.buckets ?? {}).filter(([name]) =>
    mayAny("storage", "bucket", name, ["read", "write", "delete"]),
  );
  return {
    namespaces,
    quotas: quotasOf(
      buckets,
      Object.entries(config.databases ?? {}).filter(([name]) => Object.hasOwn(namespaces, name)),
    ),
    rules: maySystem ? rulesOf(config.databases ?? {}) : {},
    buckets: buckets.map(([name, bucket]) => ({ name, external: bucket.backend !== undefined })),
    kv: named(config.kv, (name) => mayAny("kv", "namespace", name, ["read", "write"])),
    d1: named(config.d1, (name) => may("d1", "database", name, "*")),
    vectorize: Object.entries(config.vectorize ?? {})
      .filter(([name]) => mayAny("vectorize", "index", name, ["read", "write"]))
      .map(([name, { dimensions, metric = "cosine" }]) => ({ name, dimensions, metric })),
    rooms: named(config.rooms, (name) => maySystem || mayAny("rooms", "*", name, ["read", "write"])),
    jobs: named(config.jobs, jobs),
    webhooks: named(config.webhooks, (name) => jobs(`webhook:${name}`)),
    cron: Object.entries(config.cron ?? {})
      .filter(([name]) => jobs(`cron:${name}`))
      .map(([name, { schedule, timezone = null }]) => ({ name, schedule, timezone })),
    serviceKeys: maySystem ? keysOf(config.serviceKeys ?? {}, keyUse) : [],
    warnings: maySystem ? warnings() : [],
  };
}

function shownTables(
  { databases = {} }: PlatformConfig,
  isShown: (namespace: string, table: string) => boolean,
  hasEmpty: boolean,
): Resources["namespaces"] {
  const shown: Resources["namespaces"] = {};
  for (const [name, { instance, tables }] of Object.entries(describeSchema(databases).namespaces)) {
    const own = Object.entries(tables).filter(([table]) => isShown(name, table));
    const isEmpty = Object.keys(tables).length === 0;
    if (own.length > 0 || (isEmpty && hasEmpty)) shown[name] = { instance, tables: Object.fromEntries(own) };
  }
  return shown;
}

function quotasOf(
  buckets: readonly [string, BucketConfig][],
  namespaces: readonly [string, NamespaceConfig][],
): Resources["quotas"] {
  const quotas: Resources["quotas"] = { buckets: {}, namespaces: {} };
  for (const [name, { quota }] of buckets) {
    if (quota !== undefined) quotas.buckets[name] = { total: quota.total ?? null, perUser: quota.perUser ?? null };
  }
  for (const [name, { quota }] of namespaces) {
    if (quota === undefined) continue;
    const { perInstance = null, instancesPerUser = null } = quota;
    quotas.namespaces[name] = { perInstance, instancesPerUser };
  }
  return quotas;
}

function rulesOf(databases: NonNullable<PlatformConfig["databases"]>): Resources["rules"] {
  return Object.fromEntries(
    Object.entries(databases).map(([name, { tables }]) => [
      name,
      Object.fromEntries(
        Object.entries(tables).map(([table, { access = {} }]) => [
          table,
          Object.fromEntries(Object.entries(access).map(([action, rule]) => [action, String(rule)])),
        ]),
      ),
    ]),
  );
}

const keysOf = (
  keys: NonNullable<PlatformConfig["serviceKeys"]>,
  keyUse: Described["keyUse"],
): Resources["serviceKeys"] =>
  Object.entries(keys).map(([name, { scopes, expiresAt, ips }]) => ({
    name,
    scopes: scopes === undefined ? null : [...scopes],
    expiresAt: expiresAt ?? null,
    ips: ips === undefined ? null : [...ips],
    lastUsedAt: timeText(keyUse(name)),
  }));

const timeText = (at: Millis | null): string | null => (at === null ? null : isoTime(at));

export function resourcesEndpoint(described: Described): Endpoint {
  const { config } = described;
  /** Warnings, computed once, as they evaluate rules of the config. */
  let known: Resources["warnings"] | null = null;
  const warnings = () => {
    known ??= configWarnings(config).map(({ path, message }) => ({ path, message }));
    return known;
  };
  return endpoint(
    "GET /api/admin/resources",
    {
      tag: "Administration",
      summary: "List what the config declares: tables, buckets, namespaces, indexes, rooms and jobs",
      description: "Only what a scope of the key names, whatever the action.",
      caller: "serviceKey",
      place: "none",
      answers: { 200: Resources },
    },
    ({ principal, query }) => {
      query();
      return describe(described, warnings, mayOf(principal));
    },
  );
}

const mayOf =
  (principal: Principal) =>
  (...right: [string, string, string, string]): boolean =>
    principal.kind === "server" || (principal.kind === "serviceKey" && principal.scopes.allows(...right));
