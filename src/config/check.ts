import { checkAuth } from "./check-auth.ts";
import { checkBackups } from "./check-backups.ts";
import { checkRooms } from "./check-rooms.ts";
import {
  checkDeclared,
  checkPush,
  checkRateLimits,
  checkRealtime,
  checkServiceKeys,
  checkStorage,
  checkVectorize,
} from "./check-services.ts";
import { checkDatabases } from "./check-tables.ts";
import { ConfigError, type ConfigProblem } from "./problems.ts";
import { withoutPrototypes } from "./prototypes.ts";
import {
  boolean,
  type Check,
  createReport,
  describe,
  duration,
  list,
  members,
  oneOf,
  textWith,
  url,
  whole,
} from "./shape.ts";
import type { PlatformConfig } from "./types.ts";

const publicUrl: Check = (value, report) => {
  if (!url("https", "http")(value, report)) return false;
  // url has seen that it is one.
  const { search, hash, username, password } = new URL(value as string);
  return (
    [search, hash, username, password].every((part) => part === "") ||
    report.say("must not have a query, a fragment or credentials")
  );
};

const origin = textWith((value) => {
  if (value === "*" || URL.parse(value)?.origin === value) return null;
  return `must be * or an origin such as https://app.example.com, got ${describe(value)}`;
});

const checkWhole = members({
  server: members({ publicUrl, trustProxy: boolean, maxBodySize: whole({ min: 1, unit: "bytes" }) }),
  cors: members({
    origin: (value, report) => (Array.isArray(value) ? list(origin)(value, report) : origin(value, report)),
    credentials: boolean,
    maxAge: duration("seconds", { min: 0 }),
  }),
  databases: checkDatabases,
  storage: checkStorage,
  auth: checkAuth,
  kv: checkDeclared,
  d1: checkDeclared,
  vectorize: checkVectorize,
  rooms: checkRooms,
  realtime: checkRealtime,
  push: checkPush,
  analytics: members({ requestLog: boolean }),
  backups: checkBackups,
  rateLimits: checkRateLimits,
  serviceKeys: checkServiceKeys,
  api: members({ schemaEndpoint: oneOf(true, false, "authenticated"), docs: boolean }),
});

export type CheckedConfig = { config: PlatformConfig } | { problems: ConfigProblem[] };

/**
 * Every problem of a config, or the config. What it gives answers look-ups by a name with what was declared only: its maps
 * of names have no prototype. Decisions 1 and 2.
 */
export function checkConfig(value: unknown): CheckedConfig {
  const report = createReport();
  checkWhole(value, report);
  if (report.problems.length > 0) return { problems: report.problems };
  // Every member has just been looked at.
  return { config: withoutPrototypes(value as PlatformConfig) };
}

/** As `checkConfig`. Errors: `ConfigError` with every problem; `source` names the config in its message. */
export function checkedConfig(value: unknown, source = "The config"): PlatformConfig {
  const checked = checkConfig(value);
  if ("config" in checked) return checked.config;
  const count = checked.problems.length;
  throw new ConfigError(`${source} has ${count === 1 ? "a problem" : `${count} problems`}:`, checked.problems);
}
