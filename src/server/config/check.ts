import type { TSchema } from "typebox";
import { ConfigError, type ConfigProblem } from "./problems.ts";
import { Platform, type PlatformConfig } from "./sections/platform.ts";
import { tableOfView } from "./sections/tables/views.ts";
import { checkUsers, type UsersPlace, withUsersTable } from "./sections/users-table.ts";
import { check } from "./shape/check.ts";
import { createReport, isPlainObject } from "./shape/report.ts";
import type { Shape } from "./shape/schema.ts";

export type CheckedConfig = { config: PlatformConfig } | { problems: ConfigProblem[] };

/** Returns the config with maps that have no prototype, or all of its problems. */
export function checkConfig(value: unknown): CheckedConfig {
  const report = createReport();
  if (isPlainObject(value)) checkUsers(value, report);
  const { config, place } = withUsersTable(value);
  if (!check(Platform, config, report) || report.problems.length > 0) {
    return { problems: report.problems.map((problem) => asWritten(problem, place)) };
  }
  // The schema has validated the shape, from which the type follows.
  const checked = withoutPrototypes(Platform, config) as PlatformConfig;
  const users = place === null ? undefined : checked.databases?.[place.namespace]?.tables[place.table];
  if (users !== undefined) users.isUsers = true;
  for (const { tables, views = {} } of Object.values(checked.databases ?? {})) {
    for (const [name, view] of Object.entries(views)) tables[name] = tableOfView(view);
  }
  return { config: checked };
}

/** Names the place in `auth.users` of a problem of the table that is made of it. */
function asWritten(problem: ConfigProblem, place: UsersPlace | null): ConfigProblem {
  const made = place === null ? null : `databases.${place.namespace}.tables.${place.table}`;
  if (made === null || (problem.path !== made && !problem.path.startsWith(`${made}.`))) return problem;
  return { ...problem, path: `auth.users${problem.path.slice(made.length)}` };
}

/** Checks a config like `checkConfig`, and throws. Errors: `ConfigError` with every problem; `source` names the config in its message. */
export function checkedConfig(value: unknown, source = "The config"): PlatformConfig {
  const checked = checkConfig(value);
  if ("config" in checked) return checked.config;
  const count = checked.problems.length;
  throw new ConfigError(`${source} has ${count === 1 ? "a problem" : `${count} problems`}:`, checked.problems);
}

/**
 * Copies a checked value so that objects with user-defined names have no prototype: a name from a request (`constructor`,
 * `hasOwnProperty`) then finds only what was declared.
 */
function withoutPrototypes(schema: TSchema, value: unknown): unknown {
  const { properties, "~entry": entry }: Shape = schema;
  if (!isPlainObject(value)) return value;
  const entries = Object.entries(value);
  if (properties !== undefined) {
    return Object.fromEntries(
      entries.map(([name, member]) => [name, withoutPrototypes(properties[name] ?? {}, member)]),
    );
  }
  if (entry === undefined) return value;
  const copy: Record<string, unknown> = Object.create(null);
  for (const [name, member] of entries) copy[name] = withoutPrototypes(entry, member);
  return copy;
}
