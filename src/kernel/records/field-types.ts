/** The types of fields, by their names in a config. */
export const FIELD_TYPES = [
  "string",
  "text",
  "number",
  "integer",
  "boolean",
  "date",
  "datetime",
  "geo",
  "json",
  "references",
  "file",
] as const;
export type FieldType = (typeof FIELD_TYPES)[number];
