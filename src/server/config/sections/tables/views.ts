import { type Static, Type } from "typebox";
import { check } from "../../shape/check.ts";
import { AUTOMATIC_FIELDS, fieldNameProblem } from "../../shape/names.ts";
import { describe, isPlainObject, type PlainObject, type Report } from "../../shape/report.ts";
import { checkedBy, list, named, refined, rule, text } from "../../shape/schema.ts";
import { checkField } from "./field-rules.ts";
import { type Field, FieldShape, typeOf } from "./fields.ts";
import type { Rule, TableConfig } from "./tables.ts";
import { checkViewSql } from "./view-sql.ts";

/** Members of a field that a view gives: the others are about writes. */
const OF_VIEWS: readonly string[] = ["type", "required", "enum", "references"];
/** Types of fields with an index of their own, or with bytes beside the record. */
const NOT_IN_VIEWS: readonly string[] = ["geo", "references", "file"];

// The fields of tables have rules of their own.
const CheckedField = refined({ ...FieldShape, "~rules": [] }, (field: Field, report) => {
  const before = report.problems.length;
  for (const name of Object.keys(field)) {
    if (!OF_VIEWS.includes(name)) report.at(name).say(`is not for a field of a view, which has ${OF_VIEWS.join(", ")}`);
  }
  if (NOT_IN_VIEWS.includes(typeOf(field))) {
    report.at("type").say(`cannot be ${typeOf(field)} in a view; its parts can be fields of their own`);
  }
  if (isPlainObject(field.references))
    report.at("references").say("must be the name of a table, whose ids the field has");
  if (report.problems.length === before) checkField(field, report);
});

const viewField = checkedBy<Field>((value, report) => {
  if (report.member === "id") report.say("is always there: the SQL gives it as text");
  else check(CheckedField, value, report);
});

export const ViewShape = Type.Object({
  /** One SELECT over tables of the namespace, which gives a unique text `id` and the fields of `schema`. */
  sql: text(),
  /** The fields that the SQL gives beside `id`. Those that are not `required` may be null. */
  schema: named(viewField, fieldNameProblem),
  /** Absent: only service keys read the view. The rules of its tables are not asked. */
  access: Type.Optional(Type.Object({ read: Type.Optional(Type.Unsafe<Rule>(rule())) })),
  /** The tables whose changes are told to subscribers, by `resync`. Absent: nobody can subscribe. */
  live: Type.Optional(list(text())),
});
export interface ViewConfig extends Static<typeof ViewShape> {}

/** Checks the views of a namespace beside its tables. `report`: of the namespace. Broken parts are skipped. */
export function checkViews(views: unknown, tables: unknown, report: Report): void {
  if (!isPlainObject(views) || !isPlainObject(tables)) return;
  const names = new Map(Object.keys(tables).map((name) => [name.toLowerCase(), name]));
  const isFine = () => !report.problems.some(({ path }) => path.startsWith(`${report.path}.`));
  for (const [name, view] of Object.entries(views)) {
    const at = report.at("views").at(name);
    const taken = names.get(name.toLowerCase());
    if (taken !== undefined) at.say(`has the name of the table ${taken}`);
    if (!isPlainObject(view)) continue;
    checkLive(view["live"], tables, at.at("live"));
    checkReferences(view["schema"], tables, at.at("schema"));
    // Its tables can be made of a declaration without problems alone.
    if (isFine()) checkViewSql(name, view, tables, at);
  }
}

function checkLive(live: unknown, tables: PlainObject, report: Report): void {
  const names: readonly unknown[] = Array.isArray(live) ? live : [];
  for (const [place, name] of names.entries()) {
    if (typeof name !== "string") continue;
    if (!Object.hasOwn(tables, name)) report.at(place).say(`${describe(name)} is not a table of this namespace`);
    else if (names.indexOf(name) !== place) report.at(place).say(`is listed twice: ${describe(name)}`);
  }
}

function checkReferences(schema: unknown, tables: PlainObject, report: Report): void {
  for (const [name, field] of Object.entries(isPlainObject(schema) ? schema : {})) {
    const table = isPlainObject(field) ? field["references"] : undefined;
    if (typeof table !== "string" || Object.hasOwn(tables, table)) continue;
    report
      .at(name)
      .at("references")
      .say(`${describe(table)} is not a table of this namespace`);
  }
}

/** Returns the view as a table that is read like all others. */
export function tableOfView({ sql, schema, access, live = [] }: ViewConfig): TableConfig {
  const automatic = AUTOMATIC_FIELDS.filter((name) => name !== "id" && !Object.hasOwn(schema, name));
  return {
    schema: { ...schema, ...Object.fromEntries(automatic.map((name) => [name, false as const])) },
    ...(access === undefined ? {} : { access }),
    view: { sql, live },
  };
}
