import type { JsonObject, JsonValue } from "../../kernel/json/json.ts";
import type { Turns } from "../../kernel/time/turns.ts";
import { NESTED_VALUES_MAX } from "../limits.ts";

/** The JSON of values that one request is about to write, by value. No other code has these values, so they do not change. */
export type JsonTexts = ReadonlyMap<object, string>;

export const NO_TEXTS: JsonTexts = new Map();

/**
 * Serialises the values of a large request before its transaction, over several turns of the event loop. A small request
 * gets none: its values are serialised when they are stored. [TB128]
 */
export async function jsonTexts(bodies: readonly JsonObject[], turns: Turns): Promise<JsonTexts> {
  const left = { count: NESTED_VALUES_MAX };
  for (const body of bodies) {
    for (const name in body) countDown(body[name] ?? null, left);
    if (left.count < 0) return turns.run(inSteps(bodies));
  }
  return NO_TEXTS;
}

function countDown(value: JsonValue, left: { count: number }): void {
  if (--left.count < 0 || typeof value !== "object" || value === null) return;
  const members = Array.isArray(value) ? value : Object.values(value);
  for (const member of members) {
    countDown(member, left);
    if (left.count < 0) return;
  }
}

function* inSteps(bodies: readonly JsonObject[]): Generator<void, JsonTexts> {
  const texts = new Map<object, string>();
  for (const body of bodies) {
    for (const name in body) {
      const value = body[name];
      if (typeof value !== "object" || value === null) continue;
      texts.set(value, JSON.stringify(value));
      yield;
    }
  }
  return texts;
}

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
