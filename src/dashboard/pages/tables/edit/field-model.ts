import type { Field } from "../../../api/resources.ts";

/** The types of fields, in the order of the form. */
export const TYPES = [
  "string",
  "text",
  "integer",
  "number",
  "boolean",
  "datetime",
  "date",
  "reference",
  "references",
  "geo",
  "file",
  "json",
] as const;
export type FormType = (typeof TYPES)[number];

/** The inputs of a field's form, as they are typed. */
export interface FieldInputs {
  name: string;
  type: FormType;
  required: boolean;
  unique: boolean;
  fixed: boolean;
  min: string;
  max: string;
  choices: string[];
  fallback: string;
  refersTo: string;
  onDelete: string;
  bucket: string;
  many: string;
}

export const NEW_FIELD: FieldInputs = {
  name: "",
  type: "string",
  required: false,
  unique: false,
  fixed: false,
  min: "",
  max: "",
  choices: [],
  fallback: "",
  refersTo: "",
  onDelete: "",
  bucket: "",
  many: "",
};

const textOf = (value: unknown): string => (value === undefined || value === null ? "" : String(value));

/** Returns the inputs of a field that is declared. */
export function inputsOf(name: string, field: Field): FieldInputs {
  const isReference = field.references !== undefined && field.type !== "references";
  return {
    ...NEW_FIELD,
    name,
    // The server's types of fields are those of the form.
    type: isReference ? "reference" : (field.type as FormType),
    required: field.required,
    unique: field.unique,
    fixed: field.fixed === true,
    min: textOf(field.min),
    max: textOf(field.max),
    choices: (field.enum ?? []).map(String),
    fallback: field.type === "json" ? textOf(field.default && JSON.stringify(field.default)) : textOf(field.default),
    refersTo: field.references?.table ?? "",
    onDelete: field.references?.onDelete ?? "",
    many: textOf(field.many),
  };
}

export const isText = (type: FormType): boolean => type === "string" || type === "text";
export const isNumber = (type: FormType): boolean => type === "integer" || type === "number";
export const refers = (type: FormType): boolean => type === "reference" || type === "references";
export const hasBounds = (type: FormType): boolean => isText(type) || isNumber(type);

/** Returns a number where the text is one, else the text: the server says what is wrong with it. */
const numberOr = (text: string): number | string => {
  const value = Number(text);
  return text.trim() === "" || Number.isNaN(value) ? text : value;
};

function fallbackOf(type: FormType, text: string): unknown {
  if (isNumber(type)) return numberOr(text);
  if (type === "boolean") return text === "true" ? true : text === "false" ? false : text;
  if (type !== "json") return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Returns a field's declaration in the config. What is empty is left out. */
export function specOf(inputs: FieldInputs): Record<string, unknown> {
  const { type } = inputs;
  const spec: Record<string, unknown> = type === "reference" ? {} : { type };
  if (refers(type)) spec["references"] = inputs.refersTo;
  if (refers(type) && inputs.onDelete !== "") spec["onDelete"] = inputs.onDelete;
  if (type === "file" && inputs.bucket !== "") spec["bucket"] = inputs.bucket;
  if (type === "file" && inputs.many !== "") spec["many"] = numberOr(inputs.many);
  if (inputs.required && type !== "references") spec["required"] = true;
  if (inputs.unique && type !== "references" && type !== "file") spec["unique"] = true;
  if (inputs.fixed) spec["fixed"] = true;
  if (hasBounds(type) && inputs.min !== "") spec["min"] = numberOr(inputs.min);
  if ((hasBounds(type) || type === "references" || type === "file") && inputs.max !== "") {
    spec["max"] = numberOr(inputs.max);
  }
  if (hasBounds(type) && inputs.choices.length > 0) {
    spec["enum"] = isText(type) ? inputs.choices : inputs.choices.map(numberOr);
  }
  const hasFallback = !refers(type) && type !== "file" && inputs.fallback !== "";
  if (hasFallback) spec["default"] = fallbackOf(type, inputs.fallback);
  return spec;
}

/** Returns the members that differ between two declarations; null for one that goes. */
export function changesOf(before: Record<string, unknown>, after: Record<string, unknown>): Record<string, unknown> {
  const changes: Record<string, unknown> = {};
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (JSON.stringify(before[name]) !== JSON.stringify(after[name])) changes[name] = after[name] ?? null;
  }
  return changes;
}
