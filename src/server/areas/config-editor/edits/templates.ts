import type { JsonValue } from "../../../../kernel/json/json.ts";
import { AUTOMATIC_FIELDS } from "../../../config/shape/names.ts";
import { namesOfPlatform } from "../syntax/imports.ts";
import { literalOf } from "../syntax/literals.ts";
import { expressionOf, memberOf, objectOf } from "../syntax/objects.ts";
import { printKey, printValue } from "../syntax/print.ts";
import type { EditOf, RuleName, TemplateOptions } from "./edit.ts";
import { type Editing, type RuleText, type TablePlace, tableOf } from "./place.ts";

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
      requireIds(editing, place, { member: "options.field", field });
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
  requireIds(editing, members, { member: "options.userField", field: userField });
  if (roleField !== undefined && roles !== undefined) requireRoles(editing, members, { field: roleField, roles });
  for (const pair of Object.entries(match)) requireAlike(editing, { members, records: place }, pair);
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

/** The facts of a field that decide whether its values can be compared with ids, or with another field's. */
interface FieldFacts {
  /** The type; null where it is not written in place. */
  type: string | null;
  enum: JsonValue | null;
}

/** Returns the facts of a field. Errors: the table declares none of the name. A schemaless table has fields of any name. */
function factsOf(
  { fault }: SettingRule,
  { object, path }: TablePlace,
  { member, field }: { member: string; field: string },
): FieldFacts {
  const schema = objectOf(object, "schema", path);
  const unknown: FieldFacts = { type: null, enum: null };
  if (schema === null && path !== "auth.users") return unknown;
  if (AUTOMATIC_FIELDS.includes(field)) return { type: field === "id" ? "string" : "datetime", enum: null };
  const property = schema === null ? null : memberOf(schema, field, `${path}.schema`);
  if (property === null) throw fault(member, "unknown_field", `${path} has no field "${field}"`);
  const spec = property.shorthand ? undefined : literalOf(expressionOf(property, `${path}.schema.${field}`));
  if (typeof spec !== "object" || spec === null || Array.isArray(spec)) return unknown;
  const { type = "string", enum: choices = null } = spec;
  return { type: typeof type === "string" ? type : null, enum: choices };
}

/** Requires a field whose values can be ids of users. */
function requireIds(editing: SettingRule, place: TablePlace, asked: { member: string; field: string }): void {
  const { type, enum: choices } = factsOf(editing, place, asked);
  if ((type === null || type === "string" || type === "text") && choices === null) return;
  throw editing.fault(asked.member, "invalid_value", `${asked.member} must be a text without enum, for ids of users`);
}

/** Requires two fields whose values can be equal. */
function requireAlike(
  editing: SettingRule,
  places: { members: TablePlace; records: TablePlace },
  [memberField, recordField]: readonly [string, string],
): void {
  const member = `options.match.${memberField}`;
  const one = factsOf(editing, places.members, { member: "options.match", field: memberField });
  const other = factsOf(editing, places.records, { member, field: recordField });
  const isText = (type: string | null): boolean => type === "string" || type === "text";
  const isOfOneType = one.type === other.type || (isText(one.type) && isText(other.type));
  if (one.type === null || other.type === null || (isOfOneType && Bun.deepEquals(one.enum, other.enum))) return;
  throw editing.fault(member, "invalid_value", `"${memberField}" and "${recordField}" are of different types`);
}

/** Requires a field of roles, and roles that it may have. */
function requireRoles(
  editing: SettingRule,
  members: TablePlace,
  { field, roles }: { field: string; roles: readonly string[] },
): void {
  const { type, enum: choices } = factsOf(editing, members, { member: "options.roleField", field });
  if (type !== null && type !== "string" && type !== "text") {
    throw editing.fault("options.roleField", "invalid_value", "options.roleField must be a text");
  }
  const wrong = roles.find((role) => Array.isArray(choices) && !choices.includes(role));
  if (wrong !== undefined) throw editing.fault("options.roles", "invalid_value", `"${field}" cannot be "${wrong}"`);
}
