import type { JsonValue } from "../../../../kernel/json/json.ts";

/** The way in which the values of a column are converted. */
export type ValueKind = "text" | "number" | "integer" | "boolean" | "datetime" | "date" | "json" | "list";

const KINDS: readonly [pattern: RegExp, kind: ValueKind][] = [
  [/^(?:smallint|integer|bigint|int[248]?|serial|bigserial)$/, "integer"],
  [/^(?:real|double precision|float[48]?|numeric|decimal)(?:\(|$)/, "number"],
  [/^bool(?:ean)?$/, "boolean"],
  [/^timestamp/, "datetime"],
  [/^date$/, "date"],
  [/^jsonb?$/, "json"],
];

/** Returns the kind of a type. What has no counterpart here stays the text that PostgreSQL writes. */
export function kindOf(type: string): ValueKind {
  if (type.endsWith("[]")) return "list";
  return KINDS.find(([pattern]) => pattern.test(type))?.[1] ?? "text";
}

/** Returns a value here; undefined: it cannot be one of this kind. */
export function valueIn(kind: ValueKind, type: string, text: string | null): JsonValue | undefined {
  if (text === null) return null;
  switch (kind) {
    case "text":
      return text;
    case "integer":
      return Number.isSafeInteger(Number(text)) ? Number(text) : undefined;
    case "number":
      return isExact(text) ? Number(text) : undefined;
    case "boolean":
      return text === "t" || text === "true";
    case "datetime":
      return instantOf(text);
    case "date":
      return /^\d{4}-\d\d-\d\d$/.test(text) ? text : undefined;
    case "json":
      return JSON.parse(text) as JsonValue;
    case "list":
      return listOf(text, type.slice(0, -2));
    default:
      return kind satisfies never;
  }
}

/** Whether a double is the number as it is written. */
function isExact(text: string): boolean {
  const value = Number(text);
  if (!Number.isFinite(value)) return false;
  const plain = (one: string): string => (one.includes(".") ? one.replace(/\.?0+$/, "") : one).replace(/^-0$/, "0");
  return /e/i.test(text) || /e/i.test(String(value)) || plain(text) === plain(String(value));
}

/** Returns an instant with milliseconds; a time without a zone is in UTC. */
function instantOf(text: string): string | undefined {
  const [, day, time, zone = "+00"] =
    /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)([+-]\d\d(?::?\d\d)?)?$/.exec(text) ?? [];
  if (day === undefined || time === undefined) return undefined;
  const at = new Date(`${day}T${time.replace(/(\.\d{3})\d+$/, "$1")}${zone.includes(":") ? zone : `${zone}:00`}`);
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
}

/** Reads an array as PostgreSQL writes it: `{a,"b c",NULL,{…}}`. */
function listOf(text: string, type: string): JsonValue | undefined {
  const kind = kindOf(type);
  let at = 0;
  const read = (): JsonValue | undefined => {
    const items: JsonValue[] = [];
    at += 1;
    while (at < text.length && text[at] !== "}") {
      if (text[at] === ",") at += 1;
      const item = text[at] === "{" ? read() : element();
      if (item === undefined) return undefined;
      items.push(item);
    }
    at += 1;
    return items;
  };
  const element = (): JsonValue | undefined => {
    if (text[at] !== '"') {
      const end = /[,}]/g;
      end.lastIndex = at;
      const close = end.exec(text)?.index ?? text.length;
      const bare = text.slice(at, close);
      at = close;
      return bare.toUpperCase() === "NULL" ? null : valueIn(kind, type, bare);
    }
    let value = "";
    for (at += 1; at < text.length && text[at] !== '"'; at += 1) {
      if (text[at] === "\\") at += 1;
      value += text[at] ?? "";
    }
    at += 1;
    return valueIn(kind, type, value);
  };
  return text.startsWith("{") ? read() : undefined;
}
