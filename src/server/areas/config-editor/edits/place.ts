import type { ObjectExpression } from "@babel/types";
import { type AppError, badField, type FieldCode } from "../../../../kernel/errors.ts";
import { literalOf } from "../syntax/literals.ts";
import { expressionOf, memberOf, objectOf, type Splice } from "../syntax/objects.ts";
import type { Source } from "../syntax/source.ts";
import type { Edit, Problem } from "./edit.ts";

/** An edit under way, on the text that the edits before it have made. */
export interface Editing<One extends Edit = Edit> {
  readonly source: Source;
  readonly edit: One;
  /** Returns the error of a member of the edit. */
  fault(member: string, code: FieldCode, message: string): AppError;
}

/** The outcome of an edit. */
export interface Edited {
  /** The edited text, in place of replacements of the present one. */
  text?: string;
  splices: readonly Splice[];
  /** The statement of the migration that the edit needs and has written. */
  migration?: string;
  /** Places that the edit leaves as they are and that a person should look at. */
  warnings?: string[];
  /** Problems that the edited config has. */
  problems?: Problem[];
}

/** A rule as text, with the names that it needs from "platform" and what would not hold in it. */
export interface RuleText {
  text: string;
  splices: readonly Splice[];
  problems: readonly string[];
}

/** Returns an error about a member of the edit with this number. */
export const faultOf =
  (index: number) =>
  (member: string, code: FieldCode, message: string): AppError =>
    badField(member === "" ? `edits.${index}` : `edits.${index}.${member}`, code, message);

/** A table's object in the config, and its path. */
export interface TablePlace {
  readonly object: ObjectExpression;
  readonly path: string;
}

/** Returns a namespace's object. Errors: the edit's `namespace`, where the config has none of the name. */
export function namespaceOf({ source, fault }: Editing, namespace: string): ObjectExpression {
  const databases = objectOf(source.root, "databases", "");
  const found = databases === null ? null : objectOf(databases, namespace, "databases");
  if (found === null) throw fault("namespace", "invalid_value", `There is no namespace "${namespace}"`);
  return found;
}

/** Returns a table's object, that of `auth.users` too. Errors: the edit's `namespace` or `table`, where the config has none of the name. */
export function tableOf(editing: Editing & { edit: Extract<Edit, { table: string }> }): TablePlace {
  const { namespace, table } = editing.edit;
  const users = usersTable(editing.source);
  if (users !== null && users.namespace === namespace && users.table === table) return users.place;
  const path = `databases.${namespace}.tables`;
  const tables = objectOf(namespaceOf(editing, namespace), "tables", `databases.${namespace}`);
  const object = tables === null ? null : objectOf(tables, table, path);
  if (object === null) {
    throw editing.fault("table", "invalid_value", `There is no table "${table}" in namespace "${namespace}"`);
  }
  return { object, path: `${path}.${table}` };
}

/** Returns the table that `auth.users` declares; null for none. */
export function usersTable({ root }: Source): { namespace: string; table: string; place: TablePlace } | null {
  const auth = memberOf(root, "auth", "");
  if (auth === null) return null;
  const value = expressionOf(auth, "auth");
  const users = value.type === "ObjectExpression" ? memberOf(value, "users", "auth") : null;
  const object = users === null ? null : expressionOf(users, "auth.users");
  if (object?.type !== "ObjectExpression") return null;
  const text = (name: string): string | null => {
    const property = memberOf(object, name, "auth.users");
    const own = property === null ? null : literalOf(expressionOf(property, `auth.users.${name}`));
    return typeof own === "string" ? own : null;
  };
  const namespace = text("in");
  return namespace === null
    ? null
    : { namespace, table: text("table") ?? "users", place: { object, path: "auth.users" } };
}
