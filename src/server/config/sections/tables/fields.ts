import { type Static, Type } from "typebox";
import { reasonOf } from "../../../../kernel/errors.ts";
import { type JsonValue, jsonFault } from "../../../../kernel/json/json.ts";
import { checkedBy, list, text, valueThat } from "../../shape/schema.ts";

export const FIELD_TYPES = ["string", "text", "number", "integer", "boolean", "datetime", "json"] as const;
export type FieldType = (typeof FIELD_TYPES)[number];

function isJson(value: unknown): boolean {
  if (value === null || typeof value === "string" || typeof value === "boolean") return true;
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object" || jsonFault(value) !== null) return false;
  return (Array.isArray(value) ? value : Object.values(value)).every(isJson);
}

const jsonValue = valueThat<JsonValue>("a JSON value", isJson);

const pattern = checkedBy<string | RegExp>((value, report) => {
  if (value instanceof RegExp) return;
  if (typeof value !== "string") return report.say("must be a regular expression");
  try {
    new RegExp(value, "u");
  } catch (cause) {
    report.say(`is not a regular expression: ${reasonOf(cause)}`);
  }
});

const choice = valueThat<string | number>(
  "a string or a number",
  (value) => typeof value === "string" || Number.isFinite(value),
);

const ReferenceShape = Type.Object({
  table: text(),
  /** The referenced column; `id` by default, else a unique field. */
  column: Type.Optional(text()),
  /** The action on this record when the referenced one is deleted; `restrict` by default. */
  onDelete: Type.Optional(Type.Enum(["restrict", "cascade", "set null"])),
});
export interface Reference extends Static<typeof ReferenceShape> {}

/** A field by itself. `field-rules.ts` checks the relations between its members. */
export const FieldShape = Type.Object({
  type: Type.Unsafe<FieldType>(Type.Enum(FIELD_TYPES)),
  required: Type.Optional(Type.Boolean()),
  default: Type.Optional(jsonValue),
  unique: Type.Optional(Type.Boolean()),
  /** Whether only service keys and the server's own code may change the field after the insert. */
  fixed: Type.Optional(Type.Boolean()),
  /** The minimum: length in characters for text, value for numbers. */
  min: Type.Optional(Type.Number()),
  max: Type.Optional(Type.Number()),
  /** A regular expression that the whole or a part of the text must match. */
  pattern: Type.Optional(pattern),
  enum: Type.Optional(list(choice)),
  references: Type.Optional(Type.Union([text(), Type.Unsafe<Reference>(ReferenceShape)])),
  /** An SQL expression over the fields of the record, stored as a CHECK of the table. */
  check: Type.Optional(text()),
  /** Exempts stored values from `enum`, `min`, `max` and `pattern`; in types an `enum` is then any text or number. */
  validate: Type.Optional(Type.Literal("new")),
  /** Sets the datetime field to the time of each change. */
  onUpdate: Type.Optional(Type.Literal("now")),
});
export interface Field extends Static<typeof FieldShape> {}
