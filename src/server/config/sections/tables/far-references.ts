import { describe, isPlainObject, type PlainObject, type Report } from "../../shape/report.ts";
import { checkedFields } from "./checked-fields.ts";
import { referredTable } from "./fields.ts";

const TEXTUAL: ReadonlySet<unknown> = new Set([undefined, "string", "text", "references"]);

/** Checks the references to tables of other namespaces, which have other files. Broken parts are skipped. */
export function checkFarReferences(databases: PlainObject, report: Report): void {
  for (const [namespace, config] of Object.entries(databases)) {
    const tables = tablesOf(config);
    for (const [table, { schema }] of Object.entries(tables)) {
      const at = report.at(namespace).at("tables").at(table).at("schema");
      for (const [name, field] of fieldsOf(schema)) {
        const far = farOf(field);
        if (far === null) continue;
        checkTarget(far, databases, namespace, at.at(name).at("references"));
        checkField(name, field, schema, at.at(name));
        checkCascade(table, field, tables, at.at(name));
      }
    }
  }
}

const tablesOf = (namespace: unknown): Readonly<Record<string, PlainObject>> => {
  const tables = isPlainObject(namespace) ? namespace["tables"] : undefined;
  return isPlainObject(tables)
    ? Object.fromEntries(
        Object.entries(tables).filter((entry): entry is [string, PlainObject] => isPlainObject(entry[1])),
      )
    : {};
};

const fieldsOf = (schema: unknown): [string, PlainObject][] =>
  Object.entries(isPlainObject(schema) ? schema : {}).filter((entry): entry is [string, PlainObject] =>
    isPlainObject(entry[1]),
  );

const partOf = (references: unknown, name: "table" | "column" | "onDelete"): unknown =>
  isPlainObject(references) ? references[name] : name === "table" ? references : undefined;

const onDeleteOf = (field: PlainObject): unknown => field["onDelete"] ?? partOf(field["references"], "onDelete");

interface Far {
  namespace: string;
  table: string;
}

/** Returns the table of another namespace that the field refers to; null where it refers to none. */
function farOf(field: PlainObject): Far | null {
  const name = partOf(field["references"], "table");
  if (typeof name !== "string") return null;
  const { namespace, table } = referredTable(name);
  return namespace === null ? null : { namespace, table };
}

function checkTarget({ namespace, table }: Far, databases: PlainObject, own: string, report: Report): void {
  const target = Object.hasOwn(databases, namespace) ? databases[namespace] : undefined;
  if (namespace === own) report.say(`must be ${describe(table)}: it is a table of the same namespace`);
  else if (!isPlainObject(target)) report.say(`${describe(namespace)} is not a namespace of this config`);
  else if (target["instance"] === true) {
    report.say(`must name a table of a namespace without instances, and ${describe(namespace)} has instances`);
  } else if (!Object.hasOwn(tablesOf(target), table)) {
    report.say(`${describe(table)} is not a table of ${namespace}`);
  }
}

function checkField(name: string, field: PlainObject, schema: unknown, report: Report): void {
  const { type, references, required } = field;
  const column = partOf(references, "column") ?? "id";
  if (column !== "id") report.at("references").at("column").say("must be id, or left out, in another namespace");
  if (!TEXTUAL.has(type))
    report.at("type").say(`must be string or references, whose values are ids, got ${describe(type)}`);
  const at = report.at("onDelete");
  const onDelete = onDeleteOf(field);
  const choices = type === "references" ? "remove" : "setNull or cascade";
  if (onDelete === undefined) at.say(`is required beside a table of another namespace: ${choices}`);
  else if (onDelete === "restrict") {
    at.say(`cannot be restrict, since the table is in another file, which does not know of these records: ${choices}`);
  } else if (onDelete === "remove" && required === true) {
    at.say("cannot be remove, since the field is required, and the record goes all the same");
  } else if (onDelete === "setNull" || onDelete === "set null") {
    const columns = fieldsOf(schema).map(([other, { check }]) => ({
      name: other,
      field: typeof check === "string" ? { check } : null,
    }));
    if (checkedFields(columns).some((names) => names.has(name))) {
      at.say(
        "cannot be setNull, since a check names the field: it could refuse null, and the record goes all the same",
      );
    }
  }
}

/** Refuses a cascade to records that others restrict: the deletion that it follows is over. */
function checkCascade(
  from: string,
  field: PlainObject,
  tables: Readonly<Record<string, PlainObject>>,
  report: Report,
): void {
  if (onDeleteOf(field) !== "cascade") return;
  const going = new Set([from]);
  // The iteration includes what is added during it.
  for (const table of going) {
    for (const [name, { schema }] of Object.entries(tables)) {
      for (const [other, referring] of fieldsOf(schema)) {
        if (partOf(referring["references"], "table") !== table) continue;
        const onDelete = onDeleteOf(referring) ?? (referring["type"] === "references" ? "remove" : "restrict");
        if (onDelete === "cascade") going.add(name);
        else if (onDelete === "restrict" || (onDelete === "remove" && referring["required"] === true)) {
          report
            .at("onDelete")
            .say(`cannot be cascade, since ${name}.${other} restricts the deletion of records of ${table}`);
          return;
        }
      }
    }
  }
}
