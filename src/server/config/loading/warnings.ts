import { isPromise } from "../../../kernel/maybe-promise.ts";
import type { ConfigProblem } from "../problems.ts";
import { fitsRelyingParty } from "../relying-party.ts";
import type { PlatformConfig, Rule, SignUpFacts, TableAccess, TableConfig, UpdateRule } from "../types.ts";
import { kindOf } from "./declared-tables.ts";
import { fixedWarnings } from "./fixed-warnings.ts";
import { isAsyncFunction, lookupWarnings } from "./lookup-warnings.ts";
import { relationWarnings, triedAnswer } from "./relation-warnings.ts";
import { slowTextOf } from "./slow-pattern.ts";

/** Returns warnings for settings that are allowed and probably a mistake. */
export function configWarnings(config: PlatformConfig): ConfigProblem[] {
  const warnings: ConfigProblem[] = [];
  for (const [name, namespace] of Object.entries(config.databases ?? {})) {
    const path = `databases.${name}`;
    const tables = Object.entries(namespace.tables);
    if (tables.length === 0) warnings.push({ path: `${path}.tables`, message: "is empty" });
    if (namespace.instance === true && namespace.access === undefined) {
      warnings.push({ path, message: "has no access: only service keys can open or create its instances" });
    }
    for (const [table, declared] of tables) {
      warnings.push(...tableWarnings(`${path}.${kindOf(declared)}.${table}`, declared));
    }
  }
  for (const [name, bucket] of Object.entries(config.storage?.buckets ?? {})) {
    if (bucket.inline === "sameOrigin") {
      warnings.push({
        path: `storage.buckets.${name}.inline`,
        message:
          'is "sameOrigin": scripts in its files act with the rights of everybody who opens them, administrators of the dashboard too. ' +
          "Set inline: true to show files in a sandbox",
      });
    }
    if (bucket.access !== undefined || hasFilesOfRecords(config, name)) continue;
    warnings.push({
      path: `storage.buckets.${name}`,
      message: "has no access: only service keys can use it",
    });
  }
  for (const [name, room] of Object.entries(config.rooms ?? {})) {
    if (room.access?.join !== undefined) continue;
    warnings.push({ path: `rooms.${name}`, message: "has no access.join: nobody can join" });
  }
  warnings.push(
    ...lookupWarnings(config),
    ...relationWarnings(config),
    ...fixedWarnings(config),
    ...signUpWarnings(config),
    ...pagesWarnings(config),
  );
  if (config.auth?.tokens !== undefined && (config.auth.tokens.issuer ?? config.server?.publicUrl) === undefined) {
    warnings.push({
      path: "auth.tokens.issuer",
      message: "is missing, and so is server.publicUrl: tokens name the address where the server listens",
    });
  }
  if (config.cors?.credentials === true && [config.cors.origin ?? "*"].flat().includes("*")) {
    warnings.push({
      path: "cors",
      message: "allows pages of any origin to send requests with credentials; name the origins",
    });
  }
  return warnings;
}

/** Whether a field of files keeps its bytes in the bucket, which needs no access for that. */
const hasFilesOfRecords = ({ databases = {} }: PlatformConfig, bucket: string): boolean =>
  Object.values(databases).some(({ tables }) =>
    Object.values(tables).some(({ schema = {} }) =>
      Object.values(schema).some((field) => field !== false && field.type === "file" && field.bucket === bucket),
    ),
  );

/**
 * Warns about a sign-up rule that trusts an unverified email: anybody can sign up with any address. The rule is called with a
 * stand-in, up to its first await.
 */
function signUpWarnings({ auth }: PlatformConfig): ConfigProblem[] {
  const rule = auth?.signup;
  if (typeof rule !== "function") return [];
  const read = new Set<string>();
  const facts: SignUpFacts = {
    method: "password",
    email: "somebody@example.com",
    emailVerified: false,
    displayName: null,
    metadata: {},
  };
  const noting = new Proxy(facts, {
    get(target, name, receiver) {
      read.add(String(name));
      return Reflect.get(target, name, receiver);
    },
  });
  try {
    const answer = isAsyncFunction(rule) ? null : (rule as (facts: SignUpFacts) => unknown)(noting);
    if (isPromise(answer)) answer.catch(() => {});
  } catch {
    // The stand-in caused the error.
  }
  if (!read.has("email") || read.has("emailVerified")) return [];
  const message =
    "decides by the email without emailVerified: anybody can sign up with an address that is not theirs. Check emailVerified, " +
    "or set auth.requireVerifiedEmail";
  return auth?.requireVerifiedEmail === true ? [] : [{ path: "auth.signup", message }];
}

function tableWarnings(path: string, table: TableConfig): ConfigProblem[] {
  return [...accessWarnings(path, table), ...patternWarnings(path, table)];
}

function patternWarnings(path: string, { schema = {} }: TableConfig): ConfigProblem[] {
  return Object.entries(schema).flatMap(([name, field]) => {
    if (field === false || field.pattern === undefined) return [];
    const { pattern } = field;
    const slow = slowTextOf(pattern instanceof RegExp ? pattern : new RegExp(pattern, "u"));
    if (slow === null) return [];
    const message =
      `takes much longer with each further character of some texts (${JSON.stringify(slow)}): one request can block the server for ` +
      "seconds. Separate repetitions by a character that they do not contain, as in ^([a-z]+-)*[a-z]+$";
    return [{ path: `${path}.schema.${name}.pattern`, message }];
  });
}

function accessWarnings(path: string, { access }: TableConfig): ConfigProblem[] {
  if (access === undefined) {
    return [{ path, message: "has no access: only service keys can use it" }];
  }
  const message = overwriting(access);
  return message === null ? [] : [{ path: `${path}.access`, message }];
}

/** Describes why an upsert could overwrite records that the update rule protects; null where it cannot. */
function overwriting({ insert = false, update = false, upsert }: TableAccess): string | null {
  if (insert === false || update === true || upsert === "matching") return null;
  if (upsert === "either") {
    // Holds also where both rules are one function: the insert rule sees the record as it would become.
    return (
      'has upsert: "either": with ?upsert=true, callers that may insert can overwrite records that the update rule protects. ' +
      'Remove it, or set upsert: "matching", to apply the update rule to stored records'
    );
  }
  if (insert === (update as unknown) || looksAtRecord(insert) || looksAtRecord(update)) return null;
  const why =
    update === false
      ? "has an insert rule and no update rule"
      : "has insert and update rules that may depend on auth alone";
  const what = update === false ? "stored records" : "records that the update rule protects";
  return `${why}: with ?upsert=true, callers that may insert can overwrite ${what}. Set upsert: "matching" to prevent that`;
}

/**
 * Whether the record decides a rule, judged by its parameters, and by its answer to somebody: a filter. What it answers to others
 * is unknown here.
 */
const looksAtRecord = (rule: Rule | UpdateRule): boolean => {
  if (typeof rule !== "function") return false;
  if (rule.length > 1 || isAsyncFunction(rule)) return rule.length > 1;
  const answer = triedAnswer(rule);
  return typeof answer === "object" && answer !== null;
};

/** Warns where the pages cannot show passkeys. */
function pagesWarnings({ auth, server }: PlatformConfig): ConfigProblem[] {
  if (auth?.pages === undefined || auth.passkeys === undefined || server?.publicUrl === undefined) return [];
  const { rpId } = auth.passkeys;
  if (fitsRelyingParty(server.publicUrl, rpId)) return [];
  const message = `is "${rpId}", and the pages are at ${server.publicUrl}, where browsers refuse such passkeys: the pages show none`;
  return [{ path: "auth.passkeys.rpId", message }];
}
