import { type Static, Type } from "typebox";
import { reasonOf } from "../../../../kernel/errors.ts";
import { type JsonValue, jsonFault } from "../../../../kernel/json/json.ts";
import { FIELD_TYPES, type FieldType } from "../../../../kernel/records/field-types.ts";
import { FILES_PER_FIELD_MAX } from "../../limits.ts";
import { checkedBy, jsonSchema, list, text, textWith, valueThat, whole } from "../../shape/schema.ts";

export type { FieldType };

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

const OnDelete = Type.Enum(["restrict", "cascade", "set null", "setNull", "remove"]);

/** Ids of a field of several: by default, and at most. */
export const IDS_DEFAULT = 100;
export const IDS_MAX = 1_000;

const ReferenceShape = Type.Object({
  /** A table of the namespace, or one of another namespace without instances, such as `shared/users`. */
  table: text(),
  /** The referenced column; `id` by default, else a unique field. */
  column: Type.Optional(text()),
  /** The field's `onDelete`. */
  onDelete: Type.Optional(OnDelete),
});
export interface Reference extends Static<typeof ReferenceShape> {}

/** Returns the type of a field; one with references may leave it out. */
export const typeOf = ({ type = "string" }: Field): FieldType => type;

/** A reference with its defaults. */
export interface DeclaredReference {
  /** The namespace of the table, which has another file; null: that of the field. */
  namespace: string | null;
  table: string;
  column: string;
  onDelete: "restrict" | "cascade" | "set null" | "remove";
  mayBeHidden: boolean;
}

/** Returns what a field refers to; null for one that refers to nothing. */
export function referenceOf({ type, references, onDelete, mayBeHidden = false }: Field): DeclaredReference | null {
  if (references === undefined) return null;
  const given: Reference = typeof references === "string" ? { table: references } : references;
  const action = onDelete ?? given.onDelete ?? (type === "references" ? "remove" : "restrict");
  const { column = "id" } = given;
  const place = referredTable(given.table);
  return { ...place, column, onDelete: action === "setNull" ? "set null" : action, mayBeHidden };
}

/** Returns the table that `references` names: `tags`, or `shared/users` in another namespace. */
export function referredTable(name: string): Pick<DeclaredReference, "namespace" | "table"> {
  const end = name.indexOf("/");
  return end === -1 ? { namespace: null, table: name } : { namespace: name.slice(0, end), table: name.slice(end + 1) };
}

const MEDIA_RANGE = /^[a-z0-9!#$&^_.+-]+\/(?:\*|[a-z0-9!#$&^_.+-]+)$/i;

const mediaRangeProblem = (value: string): string | null =>
  MEDIA_RANGE.test(value) ? null : `must be a media type such as image/png or image/*, got "${value}"`;

/** A field by itself. `field-rules.ts` checks the relations between its members. */
export const FieldShape = Type.Object({
  /** Required, but for a field with `references`, which is a `string` then. `references`: the ids of several records. */
  type: Type.Optional(Type.Unsafe<FieldType>(Type.Enum(FIELD_TYPES))),
  required: Type.Optional(Type.Boolean()),
  default: Type.Optional(jsonValue),
  unique: Type.Optional(Type.Boolean()),
  /** Whether only service keys and the server's own code may change the field after the insert. */
  fixed: Type.Optional(Type.Boolean()),
  /** The minimum: length in characters for text, value for numbers. */
  min: Type.Optional(Type.Number()),
  /**
   * The maximum, as `min`; of `references` the number of ids, 100 by default and at most 1,000;
   * the bytes of one file for `file`, whose bucket may allow less.
   */
  max: Type.Optional(Type.Number()),
  /** The schema of the values of a `json` field: made with `t` from "elysia", with TypeBox, or a JSON Schema; any JSON by default. */
  schema: Type.Optional(jsonSchema()),
  /** The bucket of a `file`. Its access does not matter: who may read the record may read its files. */
  bucket: Type.Optional(text()),
  /** The media types that a `file` may have, such as `["image/*", "application/pdf"]`; any by default. */
  types: Type.Optional(list(textWith(mediaRangeProblem))),
  /** The number of files that a `file` field may have; its values are arrays then. Absent: one file, or null. */
  many: Type.Optional(whole({ min: 1, max: FILES_PER_FIELD_MAX, unit: "files" })),
  /** A regular expression that the whole or a part of the text must match. */
  pattern: Type.Optional(pattern),
  enum: Type.Optional(list(choice)),
  references: Type.Optional(Type.Union([text(), Type.Unsafe<Reference>(ReferenceShape)])),
  /**
   * The action on this record when the referenced one is deleted; `restrict` by default. `setNull` and `set null` are the same. Of
   * several references `remove`, which takes the id out and is the default, or `restrict`. Required beside a table of another
   * namespace, where it cannot be `restrict`.
   */
  onDelete: Type.Optional(OnDelete),
  /** Whether a record may be referred to by callers who may not read it: its existence is no secret. */
  mayBeHidden: Type.Optional(Type.Boolean()),
  /** An SQL expression over the fields of the record, stored as a CHECK of the table. */
  check: Type.Optional(text()),
  /** Exempts stored values from `enum`, `min`, `max` and `pattern`; in types an `enum` is then any text or number. */
  validate: Type.Optional(Type.Literal("new")),
  /** Sets the datetime field to the time of each change. */
  onUpdate: Type.Optional(Type.Literal("now")),
});
export interface Field extends Static<typeof FieldShape> {}
