import type { JsonValue } from "../../../../kernel/json/json.ts";

/**
 * The JSON of values that one request is about to write, by value, and of its new schemaless records, by record. No other code has
 * these, so they do not change.
 */
export type JsonTexts = ReadonlyMap<object, string>;

export const NO_TEXTS: JsonTexts = new Map();

export const textOf = (value: JsonValue, texts: JsonTexts): string =>
  (typeof value === "object" && value !== null ? texts.get(value) : undefined) ?? JSON.stringify(value);

/** Like JSON.stringify; undefined members are left out. */
export function objectText(object: Readonly<Record<string, JsonValue | undefined>>, texts: JsonTexts): string {
  if (texts.size === 0) return JSON.stringify(object);
  const members: string[] = [];
  for (const [name, value] of Object.entries(object)) {
    if (value !== undefined) members.push(`${JSON.stringify(name)}:${textOf(value, texts)}`);
  }
  return `{${members.join(",")}}`;
}
