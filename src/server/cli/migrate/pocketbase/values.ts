import { isJsonObject, type JsonValue } from "../../../../kernel/json/json.ts";
import { instantOf } from "../../../../kernel/time/iso-datetime.ts";
import type { MovedField } from "./fields.ts";
import { isEmptyValue, valuesIn } from "./survey.ts";

/** Returns an instant of PocketBase, `2024-05-06 04:00:00.000Z`; null: none. */
export const instant = (value: unknown): string | null =>
  typeof value === "string" && value !== "" ? instantOf(value) : null;

/** Tells whether a table has a record of this id. */
export type Known = (table: string, id: string) => boolean;

/**
 * Returns the value of a field here. Files have none yet. `onDangling` is called for each reference to a record that does not exist,
 * which is left out.
 */
export function movedValue(
  { source, kind, isNullable, target }: MovedField,
  value: unknown,
  { isKnown, onDangling }: { isKnown: Known; onDangling: (id: string) => void },
): JsonValue {
  const isEmpty = isEmptyValue(source, value);
  const found = (id: string): boolean => {
    if (target === null || isKnown(target, id)) return true;
    onDangling(id);
    return false;
  };
  switch (kind) {
    case "text":
      return isEmpty && isNullable ? null : String(value ?? "");
    case "number":
      return Number(value ?? 0);
    case "boolean":
      return value === 1 || value === true;
    case "datetime":
      return instant(value);
    case "choice":
      return isEmpty ? null : (valuesIn(value)[0] ?? null);
    case "choices":
      return valuesIn(value);
    case "reference": {
      const [id] = valuesIn(value);
      return id !== undefined && found(id) ? id : null;
    }
    case "references":
      return [...new Set(valuesIn(value))].filter(found);
    case "file":
      return null;
    case "files":
      return [];
    case "json":
      return jsonIn(value);
    case "geo": {
      const point = jsonIn(value);
      return isEmpty || !isJsonObject(point) ? null : { lat: Number(point["lat"]), lng: Number(point["lon"]) };
    }
    default:
      return kind satisfies never;
  }
}

function jsonIn(value: unknown): JsonValue {
  if (value === null || value === undefined || value === "") return null;
  if (typeof value === "number") return value;
  try {
    return JSON.parse(String(value)) as JsonValue;
  } catch {
    return String(value);
  }
}
