import { checkField, readableField } from "./check-field.ts";
import { checkExpressions, migrationProblem } from "./check-sql.ts";
import { fieldNameProblem, nameProblem, tableNameProblem } from "./names.ts";
import {
  boolean,
  booleanOrFunction,
  type Check,
  describe,
  func,
  isPlainObject,
  list,
  members,
  named,
  oneOf,
  type PlainObject,
  type Report,
  text,
  whole,
} from "./shape.ts";

const SWITCHABLE = new Set(["createdAt", "updatedAt"]);
const AUTOMATIC = ["id", "createdAt", "updatedAt"];
/** SQLite's own bound of columns a table. */
const FIELDS_MAX = 2000 - AUTOMATIC.length;
/** What `maxRecordSize` may say: as much as a body may hold by default. */
const RECORD_SIZE_MAX_BYTES = 10 * 1024 * 1024;
const TEXTUAL: ReadonlySet<string> = new Set(["string", "text"]);

/** The fields of one table by name: what other members of it, and other tables, may refer to. */
type Fields = ReadonlyMap<string, { type: string; isUnique: boolean }>;

const schemaShape: Check = (value, report) => {
  if (!isPlainObject(value)) return report.say(`must be an object, got ${describe(value)}`);
  const declared: Record<string, unknown> = {};
  let isRight = true;
  for (const [name, field] of Object.entries(value)) {
    if (!AUTOMATIC.includes(name)) declared[name] = field;
    else if (!SWITCHABLE.has(name)) isRight = report.at(name).say("exists without being declared");
    else if (field !== false) isRight = report.at(name).say("exists without being declared; false switches it off");
  }
  const count = Object.keys(declared).length;
  if (count > FIELDS_MAX) isRight = report.say(`must have at most ${FIELDS_MAX} fields, got ${count}`);
  return named(fieldNameProblem, checkField)(declared, report) && isRight;
};

const fieldNames = list(text);
const indexShape = members({ fields: fieldNames, unique: boolean }, ["fields"]);
const ftsShape: Check = (value, report) =>
  Array.isArray(value)
    ? fieldNames(value, report)
    : members({ fields: fieldNames, tokenize: oneOf("unicode61", "trigram", "porter") }, ["fields"])(value, report);

const migrationSql: Check = (value, report) => {
  if (!text(value, report)) return false;
  // text has looked at it.
  const problem = migrationProblem(value as string);
  return problem === null || report.say(problem);
};

const migrationShape = members({ version: whole({ min: 1 }), description: text, up: migrationSql }, [
  "version",
  "description",
  "up",
]);

const migrationsShape: Check = (value, report) => {
  if (!list(migrationShape, { isEmptyAllowed: true })(value, report)) return false;
  // migrationShape has looked at each of them.
  const versions = (value as { version: number }[]).map((migration) => migration.version);
  return versions
    .map((version, index) => {
      const previous = versions[index - 1] ?? 0;
      if (version > previous) return true;
      return report.at(index).at("version").say(`must be above the one before it: ${version} follows ${previous}`);
    })
    .every(Boolean);
};

const tableShape = members({
  schema: schemaShape,
  fts: ftsShape,
  indexes: list(indexShape, { isEmptyAllowed: true }),
  maxRecordSize: whole({ min: 1, max: RECORD_SIZE_MAX_BYTES }),
  access: members({
    read: booleanOrFunction,
    insert: booleanOrFunction,
    update: booleanOrFunction,
    delete: booleanOrFunction,
    upsert: oneOf("either", "matching"),
  }),
  hooks: members({
    beforeInsert: func,
    afterInsert: func,
    beforeUpdate: func,
    afterUpdate: func,
    beforeDelete: func,
    afterDelete: func,
  }),
  migrations: migrationsShape,
});

const namespaceShape = members(
  {
    instance: boolean,
    access: members({ create: booleanOrFunction, open: booleanOrFunction }),
    tables: named(tableNameProblem, tableShape),
  },
  ["tables"],
);

/** `databases`: every namespace, its tables, and what they say of one another. Decisions 2. */
export const checkDatabases: Check = named(nameProblem, (value, report) => {
  const isRight = namespaceShape(value, report);
  if (!isPlainObject(value)) return false;
  const before = report.problems.length;
  if (value["access"] !== undefined && value["instance"] !== true) {
    report.at("access").say("is for namespaces with instance: true; the rules of a static one stand at its tables");
  }
  checkRelations(value["tables"], report.at("tables"));
  return isRight && report.problems.length === before;
});

/** Goes on over what is wrong already: one slip must not hide the others. */
function checkRelations(value: unknown, report: Report): void {
  if (!isPlainObject(value)) return;
  const tables = new Map<string, Fields>();
  for (const [name, table] of Object.entries(value)) if (isPlainObject(table)) tables.set(name, fieldsOf(table));
  for (const [name, fields] of tables) {
    // fieldsOf has been made of it.
    const table = value[name] as PlainObject;
    const at = report.at(name);
    checkFts(name, table, fields, at.at("fts"));
    checkIndexes(table["indexes"], fields, at.at("indexes"));
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
  for (const name of SWITCHABLE) if (schema[name] !== false) fields.set(name, { type: "datetime", isUnique: false });
  for (const [name, field] of Object.entries(schema)) {
    if (!AUTOMATIC.includes(name) && isPlainObject(field)) fields.set(name, readableField(field));
  }
  return fields;
}

function checkFts(table: string, { fts, schema }: PlainObject, fields: Fields, report: Report): void {
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
    if (field === undefined) at.at(index).say(unknownField(name, fields));
    else if (!TEXTUAL.has(field.type)) at.at(index).say(`must be a string or text field, ${name} is ${field.type}`);
    else if (name.toLowerCase() === "rank" || name.toLowerCase() === `${table}_fts`.toLowerCase())
      at.at(index).say("cannot be searched under this name, which SQLite's index has for itself");
    if (names.indexOf(name) !== index) at.at(index).say(`is there twice: ${describe(name)}`);
  }
  if (fields.has("highlights")) {
    report.say(
      `cannot be declared beside a field named highlights, which is what answers of a search carry (${table})`,
    );
  }
}

function checkIndexes(indexes: unknown, fields: Fields, report: Report): void {
  if (!Array.isArray(indexes)) return;
  for (const [position, index] of indexes.entries()) {
    const names: unknown = isPlainObject(index) ? index["fields"] : undefined;
    if (!Array.isArray(names)) continue;
    const at = report.at(position).at("fields");
    for (const [place, name] of names.entries()) {
      if (typeof name !== "string") continue;
      if (!fields.has(name)) at.at(place).say(unknownField(name, fields));
      if (names.indexOf(name) !== place) at.at(place).say(`is there twice: ${describe(name)}`);
    }
  }
}

const unknownField = (name: string, fields: Fields): string =>
  `${describe(name)} is not a declared field, only ${[...fields.keys()].join(", ")}`;

function checkReference(declaration: PlainObject, tables: ReadonlyMap<string, Fields>, report: Report): void {
  const { references } = declaration;
  if (references === undefined) return;
  const at = report.at("references");
  const target: PlainObject = isPlainObject(references) ? references : { table: references };
  const { table, column = "id", onDelete } = target;
  if (onDelete === "set null" && declaration["required"] === true) {
    at.at("onDelete").say("cannot be set null, since the field is required");
  }
  if (typeof table !== "string" || typeof column !== "string") return;
  const fields = tables.get(table);
  if (fields === undefined) {
    at.say(`${describe(table)} is not a table of this namespace, and references do not reach into others`);
    return;
  }
  const field = fields.get(column);
  const { type } = readableField(declaration);
  if (field === undefined) at.at("column").say(unknownField(column, fields));
  else if (!field.isUnique) at.at("column").say(`must be id or a unique field, ${table}.${column} is not unique`);
  else if (kindOf(type) !== kindOf(field.type)) {
    at.say(`must be of the type of ${table}.${column}, which is ${field.type}, got ${type}`);
  }
}

const kindOf = (type: string): string => (TEXTUAL.has(type) ? "string" : type);
