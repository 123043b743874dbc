import type { ObjectExpression } from "@babel/types";
import { AUTOMATIC_FIELDS } from "../../../config/shape/names.ts";
import { namesOfPlatform } from "../syntax/imports.ts";
import { membersOf, objectOf } from "../syntax/objects.ts";
import { printKey, printValue } from "../syntax/print.ts";
import type { EditOf, RuleName, TemplateOptions } from "./edit.ts";
import { type Editing, type TablePlace, tableOf } from "./place.ts";
import type { RuleText } from "./rules.ts";

type SettingRule = Editing<EditOf<"setRule">>;

const plain = (text: string): RuleText => ({ text, splices: [], problems: [] });

/** Writes the rule of a template. Errors: options that are missing, or that name no field or table. */
export function templateRule(editing: SettingRule, place: TablePlace): RuleText {
  const { edit, fault } = editing;
  const { template, options = {} } = edit;
  switch (template) {
    case "public":
      return plain("true");
    case "nobody":
      return plain("false");
    case "signedIn":
      return plain("(auth) => auth !== null");
    case "owner": {
      const { field } = options;
      if (field === undefined) throw fault("options.field", "required", "options.field must name the owner's field");
      requireField(editing, place, { member: "options.field", field });
      return plain(ownerRule(edit.rule, field));
    }
    case "members":
      return membersRule(editing, place, options);
    case undefined:
      return plain("false");
    default:
      return template satisfies never;
  }
}

function ownerRule(rule: RuleName, field: string): string {
  const isOwn = (record: string): string => `${record}${accessOf(field)} === auth.id`;
  switch (rule) {
    case "read":
      return `(auth) => auth !== null && [[${JSON.stringify(field)}, "==", auth.id]]`;
    case "insert":
    case "delete":
      return `(auth, record) => auth !== null && ${isOwn("record")}`;
    case "update":
      return `(auth, record, next) => auth !== null && ${isOwn("record")} && ${isOwn("next")}`;
    default:
      return rule satisfies never;
  }
}

/** Returns the access of a member: `.name`. */
const accessOf = (name: string): string => (printKey(name) === name ? `.${name}` : `[${JSON.stringify(name)}]`);

function membersRule(editing: SettingRule, place: TablePlace, options: TemplateOptions): RuleText {
  const { edit, fault, source } = editing;
  const { table, userField, match = {}, roleField, roles } = options;
  if (table === undefined) throw fault("options.table", "required", "options.table must name the table of members");
  if (userField === undefined)
    throw fault("options.userField", "required", "options.userField must name the member's field");
  if ((roleField === undefined) !== (roles === undefined)) {
    throw fault("options.roles", "invalid_value", "options.roleField and options.roles belong together");
  }
  const members = tableOf({
    ...editing,
    edit: { ...edit, table },
    fault: (_, ...said) => fault("options.table", ...said),
  });
  const ofMembers = [["userField", userField], ...(roleField === undefined ? [] : [["roleField", roleField]])] as const;
  for (const [name, field] of ofMembers) requireField(editing, members, { member: `options.${name}`, field });
  for (const [memberField, recordField] of Object.entries(match)) {
    requireField(editing, members, { member: "options.match", field: memberField });
    requireField(editing, place, { member: `options.match.${memberField}`, field: recordField });
  }
  const isOfRole = roleField === undefined ? [] : [[roleField, "in", roles]];
  if (edit.rule === "update") return plain(membersOfBoth({ table, userField, match, isOfRole }));
  const names = namesOfPlatform(source, ["field", "some"]);
  const conditions = [
    ...Object.entries(match).map(
      ([own, record]) => `[${JSON.stringify(own)}, "==", ${names.local("field")}(${JSON.stringify(record)})]`,
    ),
    `[${JSON.stringify(userField)}, "==", auth.id]`,
    ...isOfRole.map((condition) => printValue(condition)),
  ];
  const text = `(auth) => auth !== null && ${names.local("some")}(${JSON.stringify(table)}, [${conditions.join(", ")}])`;
  return { text, splices: names.splices, problems: [] };
}

/** Writes the rule of updates, which is asked of the stored record and of what it becomes. */
function membersOfBoth({
  table,
  userField,
  match,
  isOfRole,
}: {
  table: string;
  userField: string;
  match: Record<string, string>;
  isOfRole: unknown[];
}): string {
  const wheres = [
    ...Object.entries(match).map(([own, record]) => `.where(${JSON.stringify(own)}, "==", one${accessOf(record)})`),
    `.where(${JSON.stringify(userField)}, "==", auth.id)`,
    ...isOfRole.map((condition) => `.where(${printValue(condition).slice(1, -1)})`),
  ];
  const lookup = `table(${JSON.stringify(table)})${wheres.join("")}.exists()`;
  return `(auth, record, next, { table }) => auth !== null && [record, next].every((one) => ${lookup})`;
}

/** Requires a field that the table declares. A schemaless table has fields of any name. */
function requireField(
  { fault }: SettingRule,
  { object, path }: TablePlace,
  { member, field }: { member: string; field: string },
): void {
  const schema: ObjectExpression | null = objectOf(object, "schema", path);
  if (schema === null && path !== "auth.users") return;
  if (AUTOMATIC_FIELDS.includes(field) || (schema !== null && membersOf(schema, `${path}.schema`).has(field))) return;
  throw fault(member, "unknown_field", `${path} has no field "${field}"`);
}
