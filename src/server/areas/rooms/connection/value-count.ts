import type { JsonValue } from "../../../../kernel/json/json.ts";

/** Whether a value holds at most so many values, itself included. Stops counting at that number. */
export function isWithinValues(value: JsonValue, valuesMax: number): boolean {
  let left = valuesMax;
  const waiting: JsonValue[] = [value];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (--left < 0) return false;
    if (typeof next !== "object" || next === null) continue;
    const members = Array.isArray(next) ? next : Object.values(next);
    if (members.length > left) return false;
    for (const member of members) waiting.push(member);
  }
  return true;
}
