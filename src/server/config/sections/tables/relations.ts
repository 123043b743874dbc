import { AUTOMATIC_FIELDS } from "../../shape/names.ts";
import { describe, isPlainObject, type PlainObject, type Report } from "../../shape/report.ts";
import { checkExpressions } from "./sql.ts";

const TEXTUAL: ReadonlySet<string> = new Set(["string", "text"]);

/** The fields of one table by name, to which its other members and other tables may refer. */
type Fields = ReadonlyMap<string, { type: string; isUnique: boolean }>;

/** Checks the relations between the tables of a namespace and their fields. Broken parts are skipped. */
export function checkRelations(value: unknown, report: Report): void {
  if (!isPlainObject(value)) return;
  const tables = new Map<string, Fields>();
  for (const [name, table] of Object.entries(value)) if (isPlainObject(table)) tables.set(name, fieldsOf(table));
  for (const [name, fields] of tables) {
    // `tables` contains only those that are objects.
    const table = value[name] as PlainObject;
    const at = report.at(name);
    checkSearch(name, table, fields, at.at("fts"));
    checkEmbedding(name, table, fields, at.at("embed"));
    checkIndexes(table["indexes"], fields, at.at("indexes"));
    checkDisplay(table["display"], fields, at.at("display"));
    if (!isPlainObject(table["schema"])) continue;
    for (const [field, declaration] of Object.entries(table["schema"])) {
      if (isPlainObject(declaration)) checkReference(declaration, tables, at.at("schema").at(field));
    }
    checkExpressions(table["schema"], fields, at.at("schema"));
  }
}

function fieldsOf(table: PlainObject): Fields {
  const schema = isPlainObject(table["schema"]) ? table["schema"] : {};
  const fields = new Map([["id", { type: "string", isUnique: true }]]);
  for (const name of ["createdAt", "updatedAt"]) {
    if (schema[name] !== false) fields.set(name, { type: "datetime", isUnique: false });
  }
  for (const [name, field] of Object.entries(schema)) {
    if (AUTOMATIC_FIELDS.includes(name) || !isPlainObject(field)) continue;
    fields.set(name, { type: String(field["type"] ?? "string"), isUnique: field["unique"] === true });
  }
  return fields;
}

function checkSearch(table: string, { fts, schema }: PlainObject, fields: Fields, report: Report): void {
  if (fts === undefined) return;
  const isList = Array.isArray(fts);
  const names = isList ? fts : isPlainObject(fts) ? fts["fields"] : undefined;
  if (!Array.isArray(names)) return;
  if (schema === undefined) {
    report.say("needs a schema: a table without one has no fields to search");
    return;
  }
  const at = isList ? report : report.at("fields");
  for (const [index, name] of names.entries()) {
    if (typeof name !== "string") continue;
    const field = fields.get(name);
    const isTaken = ["rank", `${table}_fts`.toLowerCase()].includes(name.toLowerCase());
    if (field === undefined) at.at(index).say(unknownField(name, fields));
    else if (!TEXTUAL.has(field.type)) at.at(index).say(`must be a string or text field, ${name} is ${field.type}`);
    else if (isTaken) at.at(index).say("cannot be searched: SQLite's full-text index uses this name itself");
    if (names.indexOf(name) !== index) at.at(index).say(`is listed twice: ${describe(name)}`);
  }
  if (fields.has("highlights")) {
    report.say(
      `needs another name for the field highlights of ${table}: results of a search have a member of that name`,
    );
  }
}

function checkEmbedding(table: string, { embed, schema }: PlainObject, fields: Fields, report: Report): void {
  const names: unknown = isPlainObject(embed) ? embed["fields"] : undefined;
  if (!Array.isArray(names)) return;
  if (schema === undefined) {
    report.say("needs a schema: a table without one has no fields to embed");
    return;
  }
  const at = report.at("fields");
  for (const [index, name] of names.entries()) {
    if (typeof name !== "string") continue;
    const field = fields.get(name);
    if (field === undefined) at.at(index).say(unknownField(name, fields));
    else if (!TEXTUAL.has(field.type)) at.at(index).say(`must be a string or text field, ${name} is ${field.type}`);
    if (names.indexOf(name) !== index) at.at(index).say(`is listed twice: ${describe(name)}`);
  }
  for (const taken of ["highlights", "similarity"]) {
    if (fields.has(taken))
      report.say(`needs another name for the field ${taken} of ${table}: results have a member of that name`);
  }
}

function checkDisplay(name: unknown, fields: Fields, report: Report): void {
  if (typeof name !== "string") return;
  const field = fields.get(name);
  if (field === undefined) report.say(unknownField(name, fields));
  else if (!TEXTUAL.has(field.type)) report.say(`must be a string or text field, ${name} is ${field.type}`);
}

function checkIndexes(indexes: unknown, fields: Fields, report: Report): void {
  if (!Array.isArray(indexes)) return;
  for (const [position, index] of indexes.entries()) {
    const names: unknown = isPlainObject(index) ? index["fields"] : undefined;
    if (!Array.isArray(names)) continue;
    const at = report.at(position).at("fields");
    for (const [place, name] of names.entries()) {
      if (typeof name !== "string") continue;
      const type = fields.get(name)?.type;
      if (type === undefined) at.at(place).say(unknownField(name, fields));
      if (type === "geo") at.at(place).say(`cannot be named: the geo field ${name} has an index of its own`);
      if (type === "references") at.at(place).say(`cannot be named: the references ${name} have an index of their own`);
      if (names.indexOf(name) !== place) at.at(place).say(`is listed twice: ${describe(name)}`);
    }
  }
}

const unknownField = (name: string, fields: Fields): string =>
  `${describe(name)} is not a declared field; the fields are ${[...fields.keys()].join(", ")}`;

function checkReference(declaration: PlainObject, tables: ReadonlyMap<string, Fields>, report: Report): void {
  const { references, required, type = "string" } = declaration;
  if (references === undefined) {
    for (const member of ["onDelete", "mayBeHidden"]) {
      if (declaration[member] !== undefined) report.at(member).say("is for a field with references");
    }
    return;
  }
  const at = report.at("references");
  const target: PlainObject = isPlainObject(references) ? references : { table: references };
  const { table, column = "id" } = target;
  if (target["onDelete"] !== undefined && declaration["onDelete"] !== undefined) {
    at.at("onDelete").say("stands beside references too: remove one of them");
  }
  for (const [onDelete, place] of [
    [target["onDelete"], at],
    [declaration["onDelete"], report],
  ] as const) {
    if ((onDelete === "set null" || onDelete === "setNull") && required === true) {
      place.at("onDelete").say("cannot be set null, since the field is required");
    }
    const isSeveral = type === "references";
    if (onDelete !== undefined && onDelete !== "restrict" && isSeveral !== (onDelete === "remove")) {
      place.at("onDelete").say(isSeveral ? "must be remove or restrict" : 'can be remove for type: "references" alone');
    }
  }
  // Tables of other namespaces are checked where all are known.
  if (typeof table !== "string" || typeof column !== "string" || table.includes("/")) return;
  const fields = tables.get(table);
  if (fields === undefined) {
    at.say(`${describe(table)} is not a table of this namespace`);
    return;
  }
  const field = fields.get(column);
  if (type === "references") {
    if (column !== "id") at.at("column").say("must be id, or left out: several references are ids");
  } else if (field === undefined) at.at("column").say(unknownField(column, fields));
  else if (!field.isUnique) at.at("column").say(`must be id or a unique field, ${table}.${column} is not unique`);
  else if (kindOf(String(type)) !== kindOf(field.type)) {
    at.say(`must have the type of ${table}.${column}, which is ${field.type}, got ${type}`);
  }
}

const kindOf = (type: string): string => (TEXTUAL.has(type) ? "string" : type);
