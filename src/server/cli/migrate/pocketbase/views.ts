import { checkConfig } from "../../../config/check.ts";
import { ACCOUNT_FIELDS } from "../../../config/sections/users-table.ts";
import { type Member, objectCode, quoted, valueCode } from "../code.ts";
import type { Remarks } from "../remarks.ts";
import { isSingle, type PbCollection, type PbField, textOption } from "./collections.ts";
import type { MovedView } from "./config.ts";
import type { MovedField, ValueKind } from "./fields.ts";
import type { MovedTable, MovePlan } from "./plan.ts";
import { oneLine, type Translation } from "./translation/translate.ts";

/** Parts of SQL that choose records or values. */
const CHOOSES = /\b(?:where|having|case|iif|coalesce|ifnull|nullif|filter|except|is|on)\b/i;
/** Types whose values have another form here: times, and values that are null in place of an empty text. */
const CHANGED: ReadonlySet<string> = new Set(["date", "autodate", "select", "relation", "file", "geoPoint"]);
const QUOTED = /('(?:[^']|'')*')/;

/** Takes views over whose SQL this server takes; the others are reported. */
export function movedViews(plan: MovePlan, translation: Translation, remarks: Remarks): MovedView[] {
  return plan.views.flatMap((view) => {
    const sql = renamed(textOption(view.options, "viewQuery"));
    const problem = sqlProblem(sql, view, plan);
    if (problem === null) return [viewOf(view, sql, { plan, translation, remarks })];
    remarks.lost(
      view.name,
      `the view, whose SQL does not fit here (${problem}): ${oneLine(textOption(view.options, "viewQuery"))}`,
    );
    return [];
  });
}

/** Renames the times of records, outside of texts. */
const renamed = (sql: string): string =>
  sql
    .trim()
    .replace(/;$/, "")
    .split(QUOTED)
    .map((part, index) =>
      index % 2 === 1
        ? part
        : part
            .replaceAll('""', "''")
            .replace(/\bcreated\b/g, "createdAt")
            .replace(/\bupdated\b/g, "updatedAt"),
    )
    .join("");

const nameOf = ({ name }: PbField): string => renamed(name);

const SAMPLE_TYPES: Readonly<Record<ValueKind, string>> = {
  text: "string",
  choice: "string",
  reference: "string",
  number: "number",
  boolean: "boolean",
  datetime: "datetime",
  choices: "json",
  references: "json",
  file: "json",
  files: "json",
  json: "json",
  geo: "json",
};

/** Checks the SQL as the start of a server does, on tables of the names here. Returns what is wrong; null: nothing. */
function sqlProblem(sql: string, { name, fields }: PbCollection, plan: MovePlan): string | null {
  const tables = plan.tables.map((table) => {
    const own = table.fields.map((field) => [field.name, { type: SAMPLE_TYPES[field.kind] }] as const);
    const account = table.kind === "users" ? Object.entries(ACCOUNT_FIELDS) : [];
    const { createdAt, updatedAt } = table.times;
    const times = [
      ...(createdAt === null && table.kind !== "users" ? ["createdAt"] : []),
      ...(updatedAt === null || table.kind === "users" ? ["updatedAt"] : []),
    ].map((time) => [time, false] as const);
    return [table.name, { schema: Object.fromEntries([...own, ...account, ...times]) }] as const;
  });
  const schema = Object.fromEntries(
    fields.filter((field) => field.name !== "id").map((field) => [nameOf(field), { type: formOf(field).type }]),
  );
  const shared = { tables: Object.fromEntries(tables), views: { [name]: { sql, schema } } };
  const checked = checkConfig({ databases: { shared } });
  return "problems" in checked ? (checked.problems[0]?.message ?? "it is refused") : null;
}

const KINDS: Readonly<Record<string, { kind: ValueKind; type: string }>> = {
  text: { kind: "text", type: "string" },
  email: { kind: "text", type: "string" },
  url: { kind: "text", type: "string" },
  editor: { kind: "text", type: "text" },
  number: { kind: "number", type: "number" },
  bool: { kind: "boolean", type: "boolean" },
  date: { kind: "datetime", type: "datetime" },
  autodate: { kind: "datetime", type: "datetime" },
};
const AS_JSON = { kind: "json", type: "json" } as const;
const AS_ID = { kind: "reference", type: "string" } as const;
const AS_CHOICE = { kind: "choice", type: "string" } as const;

function formOf(field: PbField): { kind: ValueKind; type: string } {
  if (field.type === "relation" && isSingle(field)) return AS_ID;
  if (field.type === "select" && isSingle(field)) return AS_CHOICE;
  return KINDS[field.type] ?? AS_JSON;
}

function viewOf(
  view: PbCollection,
  sql: string,
  { plan, translation, remarks }: { plan: MovePlan; translation: Translation; remarks: Remarks },
): MovedView {
  const fields = view.fields.filter(({ name }) => name !== "id");
  const targets = new Map(plan.tables.map(({ collection, name }) => [collection.id, name]));
  const moved = fields.map((source): MovedField => {
    const { kind, type } = formOf(source);
    const target = kind === "reference" ? (targets.get(textOption(source.options, "collectionId")) ?? null) : null;
    const members = { type, ...(target === null ? {} : { references: target }) };
    const name = nameOf(source);
    return {
      source,
      name,
      kind,
      target,
      isNullable: true,
      isTouched: false,
      maxFileBytes: 0,
      declaration: valueCode(members),
    };
  });
  const table: MovedTable = {
    collection: view,
    name: view.name,
    kind: "records",
    fields: moved,
    hidden: null,
    indexes: [],
    times: { createdAt: null, updatedAt: null },
    rows: 0,
    maxRecordSize: null,
  };
  const { list, view: one } = view.rules;
  const rule = translation.readRule(
    table,
    "read",
    list === one ? { "listRule and viewRule": list } : { listRule: list, viewRule: one },
  );
  const isDoubtful = rule.code !== null && choosesChanged(sql, plan);
  const doubt = "Denies here: its SQL chooses by times, or by values that are null here where they were empty.";
  if (isDoubtful)
    remarks.look(
      view.name,
      "the view is for service keys alone until you have read its SQL, which chooses by times, or by values that are null here where they were empty",
    );
  const originals = Object.entries({ listRule: list, viewRule: one }).map(
    ([name, text]) => `${name}: ${oneLine(text ?? "superusers")}`,
  );
  const read: Member[] =
    rule.code === null && rule.comments.length === 0
      ? []
      : [
          {
            name: "read",
            value: isDoubtful || rule.code === null ? "false" : rule.code,
            comments: isDoubtful ? [...originals, doubt] : rule.comments,
          },
        ];
  const schema = moved.map(({ name, declaration }): Member => ({ name, value: declaration }));
  const members: Member[] = [
    { name: "sql", value: sql.includes("\n") ? `\`${sql.replace(/[`\\]|\$\{/g, "\\$&")}\`` : quoted(sql) },
    { name: "schema", value: objectCode(schema, { isBroken: true }) },
    ...(read.length === 0 ? [] : [{ name: "access", value: objectCode(read) }]),
  ];
  return { name: view.name, code: objectCode(members, { isBroken: true }), comments: [] };
}

/** Joins by an id, which choose as they did. */
const JOINED =
  /\bon\s+\(?\s*([\w.`"]+)\s*=\s*([\w.`"]+)\s*\)?(?=\s+(?:left|right|inner|cross|join|group|order|where|limit)\b|\s*$)/gi;

/** Whether the SQL may choose by a value that has another form here. */
function choosesChanged(sql: string, { tables }: MovePlan): boolean {
  const isId = (column: string): boolean => /^(?:.*\.)?[`"]?id[`"]?$/i.test(column);
  const rest = sql.replace(JOINED, (join, left: string, right: string) => (isId(left) || isId(right) ? " " : join));
  const at = rest.search(CHOOSES);
  if (at < 0) return false;
  const names = tables.flatMap(({ collection }) =>
    collection.fields.filter(({ type }) => CHANGED.has(type)).map(nameOf),
  );
  return names.some((name) => new RegExp(`\\b${name}\\b`, "i").test(rest.slice(at)));
}
