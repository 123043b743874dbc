import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject, JsonValue } from "../../src/kernel/json/json.ts";

/** Credentials of a client at the beginning: nobody's, those of a new user, the root key, or a service key. */
export type Start = "nobody" | "user" | "root key" | { serviceKey: string };

/** Call of an operation of the adapter, and the expected result. `until`: it is repeated until it matches, for twenty seconds. */
export interface Call {
  client: string;
  do: string;
  with?: JsonObject;
  expect?: JsonValue;
  fails?: { status: JsonValue; fields?: JsonObject };
  until?: true;
  save?: string;
}

/** Act of the runner: on the network between client and server, on the server, or with the root key. */
export type Act =
  | { wait: number }
  | { network: "lose an answer" | "refuse" | "allow" }
  | { server: "kill" }
  | { service: { method: string; path: string; body?: JsonObject } };

export type Step = Call | Act | { together: Call[] };

export interface Scenario {
  name: string;
  /** Capabilities of a client, without which the scenario is left out. */
  needs?: string[];
  clients: Record<string, Start>;
  steps: Step[];
}

const FOLDER = join(import.meta.dir, "scenarios");

export function readScenarios(): Scenario[] {
  return readdirSync(FOLDER)
    .sort()
    .flatMap((name) => JSON.parse(readFileSync(join(FOLDER, name), "utf8")) as Scenario[]); // its test checks them
}

/** Returns a value with `${name.path}` replaced by what was saved. */
export function filledIn(value: JsonValue, saved: JsonObject): JsonValue {
  if (typeof value === "string") return value.replace(/\$\{([^}]+)\}/g, (_, path: string) => String(at(saved, path)));
  if (Array.isArray(value)) return value.map((item) => filledIn(item, saved));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, filledIn(member, saved)]));
}

function at(saved: JsonObject, path: string): JsonValue {
  let value: JsonValue = saved;
  for (const name of path.split(".")) {
    const next: JsonValue | undefined = (value as JsonObject | null)?.[name]; // a list has its numbers as names
    if (next === undefined) throw new Error(`Nothing was saved as ${path}`);
    value = next;
  }
  return value;
}

/**
 * Returns the path of the first difference, null if `found` matches. Objects may have further members, lists may not; "…" stands
 * for any value but null.
 */
export function difference(expected: JsonValue, found: JsonValue | undefined, path = "result"): string | null {
  const shown = `${path}: expected ${JSON.stringify(expected)}, found ${JSON.stringify(found)}`;
  if (expected === "…") return found === undefined || found === null ? shown : null;
  if (typeof expected !== "object" || expected === null) return expected === found ? null : shown;
  if (typeof found !== "object" || found === null || Array.isArray(expected) !== Array.isArray(found)) return shown;
  if (Array.isArray(expected) && expected.length !== (found as JsonValue[]).length) return shown;
  for (const [name, member] of Object.entries(expected)) {
    const problem = difference(member, (found as JsonObject)[name], `${path}.${name}`);
    if (problem !== null) return problem;
  }
  return null;
}
