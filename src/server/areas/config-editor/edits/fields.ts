import type { ArrayExpression, ObjectExpression, ObjectProperty } from "@babel/types";
import { checkField } from "../../../config/sections/tables/field-rules.ts";
import { FieldShape } from "../../../config/sections/tables/fields.ts";
import { check } from "../../../config/shape/check.ts";
import { AUTOMATIC_FIELDS, fieldNameProblem } from "../../../config/shape/names.ts";
import { createReport } from "../../../config/shape/report.ts";
import { refined } from "../../../config/shape/schema.ts";
import { quoteIdentifier } from "../../../db/index.ts";
import { literalOf } from "../syntax/literals.ts";
import {
  addEntry,
  addMember,
  expressionOf,
  memberOf,
  membersOf,
  objectOf,
  removeMember,
  type Splice,
  setMember,
  spliced,
} from "../syntax/objects.ts";
import { printValue } from "../syntax/print.ts";
import { NotEditable, parseSource, type Source, startOf } from "../syntax/source.ts";
import type { EditOf } from "./edit.ts";
import { type Edited, type Editing, type TablePlace, tableOf } from "./place.ts";
import { namedInCode, requireUnused } from "./uses.ts";

const CheckedField = refined(FieldShape, checkField);

/** Throws the first problem of a field's declaration, as one of `member`. */
function requireField({ fault }: Editing, member: string, spec: unknown): void {
  const report = createReport(member, member);
  if (check(CheckedField, spec, report)) return;
  const [problem] = report.problems;
  if (problem === undefined) return;
  throw fault(problem.path, "invalid_value", `${problem.path} ${problem.message}`);
}

/** Returns the object of the fields of a table. Errors: the table is schemaless. */
function schemaOf({ fault }: Editing, { object, path }: TablePlace): ObjectExpression {
  const schema = objectOf(object, "schema", path);
  if (schema !== null) return schema;
  throw fault("table", "invalid_value", `${path} is schemaless: its records have fields of any name`);
}

/** Adds a field behind the last one. */
export function addField(editing: Editing<EditOf<"addField">>): Edited {
  const { source, edit, fault } = editing;
  const { field, spec } = edit;
  const place = tableOf(editing);
  const wrong = AUTOMATIC_FIELDS.includes(field) ? "is added to every table automatically" : fieldNameProblem(field);
  if (wrong !== null) throw fault("field", "invalid_value", `field ${wrong}`);
  requireField(editing, "spec", spec);
  const print = (indent: string, taken: number): string => printValue(spec, indent, taken);
  const schema = place.path === "auth.users" ? objectOf(place.object, "schema", place.path) : schemaOf(editing, place);
  if (schema === null) {
    const fields = (indent: string, taken: number): string => printValue({ [field]: spec }, indent, taken);
    return { splices: addMember(source, place.object, "schema", fields) };
  }
  if (memberOf(schema, field, `${place.path}.schema`) !== null) {
    throw fault("field", "not_unique", `${place.path} has a field "${field}" already`);
  }
  return { splices: addMember(source, schema, field, print) };
}

/** Returns a field's member and object. Errors: the table has none of the name; its value is no object in place. */
function fieldOf(editing: Editing<EditOf<"setField"> | EditOf<"removeField">>) {
  const place = tableOf(editing);
  const schema = schemaOf(editing, place);
  const path = `${place.path}.schema`;
  const property = memberOf(schema, editing.edit.field, path);
  if (property === null) {
    throw editing.fault("field", "invalid_value", `${place.path} has no field "${editing.edit.field}"`);
  }
  return { place, schema, path, property };
}

/** Sets and removes members of a field. The text is parsed again for each, in a turn of its own. */
export async function setField(editing: Editing<EditOf<"setField">>): Promise<Edited> {
  const { edit, fault } = editing;
  const changes = Object.entries(edit.changes);
  if (changes.length === 0) throw fault("changes", "required", "changes must name at least one member");
  const kept = literalOf(declared(editing).object);
  if (typeof kept === "object" && kept !== null && !Array.isArray(kept)) {
    const merged = Object.entries({ ...kept, ...edit.changes }).filter(([, value]) => value !== null);
    requireField(editing, "changes", Object.fromEntries(merged));
  }
  let { source } = editing;
  for (const [name, value] of changes) {
    await Bun.sleep(0);
    const { object, path } = declared({ ...editing, source });
    const splices =
      value === null
        ? withoutMember(source, object, { name, path })
        : setMember(source, object, { name, path, print: printed(value) });
    source = parseSource(spliced(source.text, splices));
  }
  return { text: source.text, splices: [] };
}

function withoutMember(
  source: Source,
  object: ObjectExpression,
  { name, path }: { name: string; path: string },
): Splice[] {
  const property = memberOf(object, name, path);
  return property === null ? [] : removeMember(source, object, property);
}

/** Returns the object of the edited field. */
function declared(editing: Editing<EditOf<"setField">>): { object: ObjectExpression; path: string } {
  const { field } = editing.edit;
  const { schema, path } = fieldOf(editing);
  const object = objectOf(schema, field, path);
  if (object === null) throw new NotEditable(`${path}.${field} is no object in place`, startOf(schema));
  return { object, path: `${path}.${field}` };
}

/**
 * Removes a field, and writes the migration that drops its values. Errors: an index, search, view or reference uses it; code that
 * names it is only warned of.
 */
export function removeField(editing: Editing<EditOf<"removeField">>): Edited {
  const { source, edit } = editing;
  const { place, schema, property } = fieldOf(editing);
  requireUnused(editing, place);
  const up = `ALTER TABLE ${quoteIdentifier(edit.table)} DROP COLUMN ${quoteIdentifier(edit.field)}`;
  const removal = removeMember(source, schema, property);
  const migration = { description: `${edit.field} is removed`, up };
  const text = spliced(source.text, removal);
  return {
    text: withMigration({ ...editing, source: parseSource(text) }, migration),
    splices: [],
    migration: up,
    warnings: namedInCode(place, edit.field, source.text),
  };
}

/** Adds a migration behind those of the table, with the next version. */
function withMigration(
  editing: Editing<EditOf<"removeField">>,
  migration: { description: string; up: string },
): string {
  const { source } = editing;
  const { object, path } = tableOf(editing);
  const property = memberOf(object, "migrations", path);
  if (property === null) {
    const print = (indent: string, taken: number): string => printValue([{ version: 1, ...migration }], indent, taken);
    return spliced(source.text, addMember(source, object, "migrations", print));
  }
  const list = listOf(property, `${path}.migrations`);
  const version = 1 + Math.max(0, ...list.elements.map((entry) => versionOf(entry, `${path}.migrations`)));
  return spliced(
    source.text,
    addEntry(source, list, (indent, taken) => printValue({ version, ...migration }, indent, taken)),
  );
}

function versionOf(entry: ArrayExpression["elements"][number], path: string): number {
  const object = entry?.type === "ObjectExpression" ? entry : null;
  const property = object === null ? null : memberOf(object, "version", path);
  const version = property === null ? null : literalOf(expressionOf(property, path));
  if (typeof version === "number") return version;
  throw new NotEditable(
    `${path} has an entry whose version is not written in place`,
    entry === null ? null : startOf(entry),
  );
}

/** Adds an index behind the last one. */
export function addIndex(editing: Editing<EditOf<"addIndex">>): Edited {
  const { source, edit, fault } = editing;
  const { object, path } = tableOf(editing);
  requireFields(editing, object, path);
  const index = edit.unique === true ? { fields: edit.fields, unique: true } : { fields: edit.fields };
  const property = memberOf(object, "indexes", path);
  if (property === null) return { splices: addMember(source, object, "indexes", printed([index])) };
  const list = listOf(property, `${path}.indexes`);
  const present = list.elements.map((entry) => (entry?.type === "ObjectExpression" ? literalOf(entry) : undefined));
  if (present.some((one) => Bun.deepEquals(one, index))) {
    throw fault("fields", "not_unique", `${path} has this index already`);
  }
  return { splices: addEntry(source, list, printed(index)) };
}

/** Sets the fields of full-text search; an empty list ends it. */
export function setFts(editing: Editing<EditOf<"setFts">>): Edited {
  const { source, edit } = editing;
  const { object, path } = tableOf(editing);
  const property = memberOf(object, "fts", path);
  if (edit.fields.length === 0) {
    return { splices: property === null ? [] : removeMember(source, object, property) };
  }
  requireFields(editing, object, path);
  const value = property === null ? null : expressionOf(property, `${path}.fts`);
  if (value?.type === "ObjectExpression") {
    return { splices: setMember(source, value, { name: "fields", path: `${path}.fts`, print: printed(edit.fields) }) };
  }
  return { splices: setMember(source, object, { name: "fts", path, print: printed(edit.fields) }) };
}

/** Requires a list of different fields that the table has. A schemaless table has fields of any name. */
function requireFields(
  editing: Editing<EditOf<"addIndex"> | EditOf<"setFts">>,
  object: ObjectExpression,
  path: string,
): void {
  const { fields } = editing.edit;
  if (fields.length === 0) throw editing.fault("fields", "required", "fields must name at least one field");
  const schema = objectOf(object, "schema", path);
  const members = schema === null ? null : membersOf(schema, `${path}.schema`);
  for (const [index, field] of fields.entries()) {
    const member = `fields.${index}`;
    if (fields.indexOf(field) !== index)
      throw editing.fault(member, "not_unique", `${member} is listed twice: "${field}"`);
    if (members === null || members.has(field) || AUTOMATIC_FIELDS.includes(field)) continue;
    throw editing.fault(member, "unknown_field", `${path} has no field "${field}"`);
  }
}

/** Returns a member's list. Errors: it is not written in place. */
function listOf(property: ObjectProperty, path: string): ArrayExpression {
  const value = expressionOf(property, path);
  if (value.type === "ArrayExpression") return value;
  throw new NotEditable(`${path} is not a list in place`, startOf(value));
}

const printed =
  (value: unknown) =>
  (indent: string, taken: number): string =>
    printValue(value, indent, taken);
