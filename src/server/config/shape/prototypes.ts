import type { TSchema } from "typebox";
import { isPlainObject } from "./report.ts";
import type { Shape } from "./schema.ts";

/**
 * Copies a checked value so that objects with user-defined names have no prototype: a name from a request (`constructor`,
 * `hasOwnProperty`) then finds only what was declared.
 */
export function withoutPrototypes(schema: TSchema, value: unknown): unknown {
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
