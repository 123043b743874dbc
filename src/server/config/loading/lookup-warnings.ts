import { frozenJson } from "../../../kernel/json/frozen.ts";
import type { JsonObject } from "../../../kernel/json/json.ts";
import { callerLine } from "../../../kernel/observing/caller-line.ts";
import { FORMER_FORMS, formerMethods, type RecordSource, SourceQuery } from "../../../kernel/records/record-query.ts";
import type { ConfigProblem } from "../problems.ts";
import type { Auth, Lookup, NamespaceConfig, PlatformConfig, RuleContext, TableConfig } from "../types.ts";
import { kindOf } from "./declared-tables.ts";

type Databases = Readonly<Record<string, NamespaceConfig>>;
type AnyRule = (...args: unknown[]) => unknown;

/** A rule that takes a context as its last argument, and its path. */
interface ContextRule {
  path: string;
  rule: AnyRule;
  /** The number of arguments between `auth` and the context. */
  between: number;
  namespace: string | null;
}

export const SOMEBODY: Auth = frozenJson({
  id: "somebody",
  email: null,
  emailVerified: false,
  phone: null,
  role: "user",
  isAnonymous: false,
  custom: {},
  invitation: null,
});

/** A stand-in with every field, so that a rule continues after a lookup. Writes are discarded, as all rules share it. */
export const STAND_IN = new Proxy<Record<string, string>>(
  {},
  { get: (_, name) => (typeof name === "string" ? "" : undefined), set: () => true },
);

/**
 * Returns warnings for lookups without an index. Only synchronous rules are tried, called with stand-ins for a user and a record; a
 * lookup that such a call does not reach is missed.
 */
export function lookupWarnings(config: PlatformConfig): ConfigProblem[] {
  const databases = config.databases ?? {};
  const problems = new Map<string, ConfigProblem>();
  for (const one of contextRules(config)) {
    for (const message of triedLookups(one, databases)) {
      problems.set(`${one.path} ${message}`, { path: one.path, message });
    }
  }
  return [...problems.values()];
}

function* contextRules(config: PlatformConfig): Generator<ContextRule> {
  const of = (path: string, rule: unknown, between: number, namespace: string | null): ContextRule[] =>
    typeof rule === "function" && rule.length === between + 2 && !isAsyncFunction(rule)
      ? [{ path, rule: rule as AnyRule, between, namespace }]
      : [];
  for (const [namespace, { access, tables }] of Object.entries(config.databases ?? {})) {
    const path = `databases.${namespace}`;
    for (const [name, rule] of Object.entries(access ?? {})) yield* of(`${path}.access.${name}`, rule, 1, namespace);
    for (const [table, declared] of Object.entries(tables)) {
      for (const [name, rule] of Object.entries(declared.access ?? {})) {
        yield* of(`${path}.${kindOf(declared)}.${table}.access.${name}`, rule, name === "update" ? 2 : 1, namespace);
      }
    }
  }
  for (const [bucket, { access }] of Object.entries(config.storage?.buckets ?? {})) {
    for (const [name, rule] of Object.entries(access ?? {})) {
      yield* of(`storage.buckets.${bucket}.access.${name}`, rule, 1, null);
    }
  }
  for (const [room, { access }] of Object.entries(config.rooms ?? {})) {
    yield* of(`rooms.${room}.access.join`, access?.join, 1, null);
    yield* of(`rooms.${room}.access.action`, access?.action, 3, null);
  }
  yield* of("realtime.access.presence", config.realtime?.access?.presence, 1, null);
  yield* of("realtime.access.broadcast", config.realtime?.access?.broadcast, 2, null);
}

/** Whether a rule is asynchronous. Such a rule is not tried: it may send requests. */
export const isAsyncFunction = (rule: { constructor: { name: string } }): boolean =>
  rule.constructor.name === "AsyncFunction";

/** Returns the problems of the lookups that the rule reaches, once when none finds a record and once when each does. */
function triedLookups({ rule, between, namespace }: ContextRule, databases: Databases): string[] {
  const problems: string[] = [];
  for (const found of [false, true]) {
    const context = tryingContext(databases, namespace, found, (problem) => problems.push(problem));
    try {
      rule(SOMEBODY, ...Array.from({ length: between }, () => STAND_IN), context);
    } catch {
      // The stand-ins caused the error; later lookups stay unknown.
    }
  }
  return problems;
}

function tryingContext(
  databases: Databases,
  namespace: string | null,
  found: boolean,
  say: (problem: string) => void,
): RuleContext {
  const lookupOf = (name: string, table: string): Lookup => {
    const declared = databases[name]?.tables[table];
    if (declared === undefined) say(`looks up ${name}.${table}, which is not declared`);
    else if (declared.view !== undefined) say(`looks up ${name}.${table}, which denies: it is a view`);
    const asked = (filter: unknown): void => {
      const missing = declared === undefined || declared.view !== undefined ? null : missingIndex(declared, filter);
      if (missing !== null) say(`looks up ${name}.${table} without an index, which denies: ${missing}`);
    };
    // A stand-in has every field.
    const record = found ? (STAND_IN as never) : null;
    const find = (filter: unknown): JsonObject[] => {
      asked(filter);
      return record === null ? [] : [record];
    };
    const source: RecordSource = {
      find: ({ filter }) => find(filter),
      exists: (filter) => find(filter).length > 0,
      aggregate: (filter) => find(filter),
      expand: (records) => records,
      // The stand-ins may have caused it.
      mistake: (_field, message) => new Error(message),
    };
    const former = formerMethods(source, find, (form, _filter, called) => {
      const line = callerLine(called);
      const at = line === null ? "" : ` (${line})`;
      say(`uses ${form} of ${name}.${table}${at}, which ends with 0.4: write ${FORMER_FORMS[form]}`);
    });
    // The types of a query's fields and paths are those of the config.
    return Object.assign(new SourceQuery(source), former, { get: () => record }) as unknown as Lookup;
  };
  return {
    namespace,
    instanceId: "instance",
    sent: [],
    table: (table) => lookupOf(namespace ?? "", table),
    db: (name) => ({ table: (table) => lookupOf(name, table) }),
  };
}

/** Describes the index to declare; null where an index begins with a field that the filter names with `==` or `in`. */
function missingIndex(table: TableConfig, filter: unknown): string | null {
  // What is in groups enters no index.
  const tuples = Array.isArray(filter) ? filter.filter((one): one is unknown[] => Array.isArray(one)) : [];
  const equal = tuples.filter(([, operator]) => operator === "==" || operator === "in").map(([field]) => String(field));
  return indexWarning(table, equal);
}

/** Describes the index to declare; null where an index begins with one of these fields. */
export function indexWarning({ schema = {}, indexes = [] }: TableConfig, equal: readonly string[]): string | null {
  const hasIndex = (name: string): boolean => {
    const field = schema[name];
    const isOwn = field !== undefined && field !== false && (field.unique === true || field.references !== undefined);
    return name === "id" || isOwn || indexes.some(({ fields }) => fields[0] === name);
  };
  if (equal.some(hasIndex)) return null;
  if (equal.length === 0) return "name the id or an indexed field with == or in";
  return `declare indexes: [{ fields: ${JSON.stringify([...new Set(equal)])} }]`;
}
