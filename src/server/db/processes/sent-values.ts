import { SENT_AS_JSON_CHARS_MAX, SENT_AS_JSON_MIN } from "../limits.ts";

/** Bound values of a statement, as they are sent to a process. */
export type SentValues<Value> = readonly Value[] | string;

/** Encodes many short values as one JSON text where that preserves them, because Bun takes time for each value of a message. */
export function sentValues<Value>(values: readonly Value[]): SentValues<Value> {
  if (values.length < SENT_AS_JSON_MIN || !values.every(isKeptByJson)) return values;
  const chars = values.reduce((sum: number, value) => sum + (typeof value === "string" ? value.length : 0), 0);
  return chars > values.length * SENT_AS_JSON_CHARS_MAX ? values : JSON.stringify(values);
}

export function receivedValues<Value>(sent: SentValues<Value>): readonly Value[] {
  // Encoded by `sentValues`.
  return typeof sent === "string" ? (JSON.parse(sent) as Value[]) : sent;
}

function isKeptByJson(value: unknown): boolean {
  if (typeof value === "number") return Number.isFinite(value) && !Object.is(value, -0);
  return value === null || typeof value === "string" || typeof value === "boolean";
}
