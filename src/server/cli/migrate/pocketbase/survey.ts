import { isJsonObject } from "../../../../kernel/json/json.ts";
import { numberOption, type PbCollection, type PbField, textOption, textsOption } from "./collections.ts";
import type { PbSource } from "./source.ts";

/** Facts of the stored values of a field, which its options need not fit: they are checked at writes alone. */
export interface FieldFacts {
  /** Records without a value. */
  empty: number;
  /** Values that break an option of the field. */
  unfit: number;
  /** Numbers that are not whole. */
  fractions: number;
  /** The most values that one record has. */
  most: number;
}

export interface Survey {
  rows: number;
  /** The bytes of the largest record, about. */
  largestBytes: number;
  fields: ReadonlyMap<string, FieldFacts>;
}

export const NO_FACTS: FieldFacts = { empty: 0, unfit: 0, fractions: 0, most: 0 };

/** The ids of the records that can be moved, by the id of their collection. */
export type RecordIds = ReadonlyMap<string, ReadonlySet<string>>;

/** Reads every record of a collection once. A reference to nothing counts as no value. */
export function surveyOf(source: PbSource, { name, fields }: PbCollection, ids: RecordIds): Survey {
  const facts = new Map(fields.map((field) => [field.name, { ...NO_FACTS }]));
  const isUnfit = new Map(fields.map((field) => [field.name, unfitness(field)]));
  let rows = 0;
  let largestBytes = 0;
  for (const row of source.rows(name)) {
    rows += 1;
    let bytes = 0;
    for (const field of fields) {
      const value = row[field.name];
      const fact = facts.get(field.name);
      if (fact === undefined) continue;
      bytes += typeof value === "string" ? value.length + field.name.length : 24;
      const values = valuesIn(value);
      fact.most = Math.max(fact.most, values.length);
      const targets = field.type === "relation" ? ids.get(textOption(field.options, "collectionId")) : undefined;
      const isDangling = targets !== undefined && !values.some((id) => targets.has(id));
      if (isEmptyValue(field, value) || isDangling) fact.empty += 1;
      else if (isUnfit.get(field.name)?.(value) === true) fact.unfit += 1;
      if (typeof value === "number" && !Number.isSafeInteger(value)) fact.fractions += 1;
    }
    largestBytes = Math.max(largestBytes, bytes);
  }
  return { rows, largestBytes, fields: facts };
}

/** Returns the values of a field that may have several: stored as a list, or as one text. */
export function valuesIn(value: unknown): string[] {
  if (typeof value !== "string" || value === "") return [];
  if (!value.startsWith("[")) return [value];
  try {
    const list: unknown = JSON.parse(value);
    return Array.isArray(list) ? list.filter((one) => typeof one === "string" && one !== "") : [value];
  } catch {
    return [value];
  }
}

/** Whether PocketBase counts the value as none. */
export function isEmptyValue({ type }: PbField, value: unknown): boolean {
  if (value === null || value === undefined || value === "") return true;
  if (type === "geoPoint") return isOrigin(value);
  if (type === "json") return value === "null";
  return value === "[]" && ["select", "relation", "file"].includes(type);
}

function isOrigin(value: unknown): boolean {
  try {
    const point: unknown = JSON.parse(String(value));
    return !isJsonObject(point) || (Number(point["lon"] ?? 0) === 0 && Number(point["lat"] ?? 0) === 0);
  } catch {
    return true;
  }
}

/** Returns the pattern of a text as this server takes it; null: it has none, or one of Go alone. */
export function patternOf(field: PbField): RegExp | null {
  const pattern = textOption(field.options, "pattern");
  try {
    return pattern === "" ? null : new RegExp(pattern, "u");
  } catch {
    return null;
  }
}

function unfitness(field: PbField): (value: unknown) => boolean {
  const { type, options } = field;
  if (type === "text") {
    const [min, max, pattern] = [numberOption(options, "min"), numberOption(options, "max"), patternOf(field)];
    return (value) => {
      const text = String(value);
      const length = [...text].length;
      return length < min || (max > 0 && length > max) || pattern?.test(text) === false;
    };
  }
  if (type === "number") {
    const { min, max } = options;
    return (value) =>
      (typeof min === "number" && Number(value) < min) || (typeof max === "number" && Number(value) > max);
  }
  if (type === "select") {
    const known = new Set(textsOption(options, "values"));
    return (value) => valuesIn(value).some((one) => !known.has(one));
  }
  return () => false;
}
