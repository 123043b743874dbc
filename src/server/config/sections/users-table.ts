import { type Static, Type } from "typebox";
import { AUTOMATIC_FIELDS } from "../shape/names.ts";
import { describe, isPlainObject, type PlainObject, type Report } from "../shape/report.ts";
import { checkedBy, text } from "../shape/schema.ts";
import { checkedFields } from "./tables/checked-fields.ts";
import type { Field } from "./tables/fields.ts";
import type { FullTextSearch, Index, Migration, Rule, TableConfig, UpdateRule } from "./tables/tables.ts";

/** A member that is checked as that of the table which `withUsersTable` makes of it. */
const ofTable = <Value>() => Type.Optional(checkedBy<Value>(() => {}));

export interface UsersAccess {
  read?: Rule;
  /** The rule for changes of the fields of your own. */
  update?: UpdateRule;
}

export const UsersShape = Type.Object({
  /** The static namespace with the table. */
  in: text(),
  /** The name of the table; `users` by default. */
  table: Type.Optional(text()),
  /** Fields of your own. */
  schema: ofTable<{ readonly [name: string]: Field }>(),
  fts: ofTable<TableConfig["fts"] & (readonly string[] | FullTextSearch)>(),
  indexes: ofTable<readonly Index[]>(),
  migrations: ofTable<readonly Migration[]>(),
  access: ofTable<UsersAccess>(),
});
export interface UsersConfig extends Static<typeof UsersShape> {}

/** The fields that the account decides. */
export const ACCOUNT_FIELDS = {
  displayName: { type: "string" },
  avatarUrl: { type: "string" },
  isAnonymous: { type: "boolean", required: true, default: false },
  email: { type: "string" },
} as const satisfies { readonly [name: string]: Field };

const USERS_TABLE = "users";

/** The place of the table of users. */
export interface UsersPlace {
  namespace: string;
  table: string;
}

/** Returns where the config has the table of users; null: it has none. */
export function usersPlace(auth: { users?: UsersConfig } | undefined): UsersPlace | null {
  const users = auth?.users;
  return users === undefined ? null : { namespace: users.in, table: users.table ?? USERS_TABLE };
}

/** A config with the table that `auth.users` declares among its tables, and where that is; null where it cannot be added. */
export function withUsersTable(config: unknown): { config: unknown; place: UsersPlace | null } {
  const nothing = { config, place: null };
  if (!isPlainObject(config)) return nothing;
  const users = member(config["auth"], "users");
  const name = member(users, "table") ?? USERS_TABLE;
  const inside = member(users, "in");
  const { databases } = config;
  if (!isPlainObject(users) || typeof inside !== "string" || typeof name !== "string") return nothing;
  const namespace = ownMember(databases, inside);
  const tables = member(namespace, "tables");
  if (!isPlainObject(databases) || !isPlainObject(namespace) || !isPlainObject(tables)) return nothing;
  if (namespace["instance"] === true || Object.hasOwn(tables, name)) return nothing;
  const { in: _in, table: _table, schema: own = {}, ...others } = users;
  if (!isPlainObject(own)) return nothing;
  const schema = { ...ACCOUNT_FIELDS, ...own, updatedAt: false };
  const added = { ...tables, [name]: { ...others, schema } };
  return {
    config: { ...config, databases: { ...databases, [inside]: { ...namespace, tables: added } } },
    place: { namespace: inside, table: name },
  };
}

const member = (value: unknown, name: string): unknown => (isPlainObject(value) ? value[name] : undefined);

const ownMember = (value: unknown, name: string): unknown =>
  isPlainObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;

/** Checks where the table is declared, and what would refuse accounts. `config`: as written. */
export function checkUsers({ auth, databases }: PlainObject, report: Report): void {
  const users = member(auth, "users");
  if (!isPlainObject(users)) return;
  const at = report.at("auth").at("users");
  const { in: inside, table: name = USERS_TABLE, schema = {} } = users;
  const namespace = typeof inside === "string" ? ownMember(databases, inside) : undefined;
  if (typeof inside === "string" && !isPlainObject(namespace)) {
    at.at("in").say(`${describe(inside)} is not a namespace of this config`);
  } else if (member(namespace, "instance") === true) {
    at.at("in").say(`must be a namespace without instance: true, and ${describe(inside)} has instances`);
  } else if (typeof name === "string" && ownMember(member(namespace, "tables"), name) !== undefined) {
    at.at("table").say(`${describe(name)} is a table of ${inside} already: give the table of users another name`);
  }
  if (!isPlainObject(schema)) at.at("schema").say(`must be an object, got ${describe(schema)}`);
  else
    for (const [field, declared] of Object.entries(schema)) checkOwnField(field, declared, at.at("schema").at(field));
  for (const action of ["insert", "delete", "upsert"]) {
    if (member(users["access"], action) === undefined) continue;
    at.at("access")
      .at(action)
      .say("is not an option here: records of users come and go with accounts; the options are read, update");
  }
  checkNamedFields(users, isPlainObject(schema) ? schema : {}, at);
  checkReferring(schema, name, at.at("schema"));
  const tables = member(namespace, "tables");
  for (const [table, declared] of Object.entries(isPlainObject(tables) ? tables : {})) {
    const place = report.at("databases").at(String(inside)).at("tables").at(table);
    checkReferring(member(declared, "schema"), name, place.at("schema"));
  }
}

/** Refuses what could refuse a sign-up, which comes before the record. */
function checkOwnField(name: string, field: unknown, report: Report): void {
  if (Object.hasOwn(ACCOUNT_FIELDS, name) || AUTOMATIC_FIELDS.includes(name)) {
    report.say("is a field of every user: choose another name");
  }
  if (!isPlainObject(field)) return;
  const hasDefault = field["default"] !== undefined && field["default"] !== null;
  if (field["required"] === true && !hasDefault) {
    report.at("required").say("needs a default: an account is created without fields of your own");
  }
  if (field["unique"] === true && hasDefault)
    report.at("unique").say("cannot have a default, which two users would have");
  if (field["check"] !== undefined) report.at("check").say("is not possible here: it could refuse an account");
  if (field["references"] === undefined) return;
  if (hasDefault) report.at("default").say("is not possible beside references: an account would need that record");
  const references = member(field, "references");
  const onDelete = field["onDelete"] ?? member(references, "onDelete");
  if (onDelete === "cascade") {
    report.at("onDelete").say("cannot be cascade: a user goes with the account alone");
  }
}

/** Refuses the address in what would make it searchable, and unique indexes that could refuse an account. */
function checkNamedFields({ fts, indexes }: PlainObject, own: PlainObject, report: Report): void {
  const searched = Array.isArray(fts) ? fts : member(fts, "fields");
  const isList = Array.isArray(fts);
  if (Array.isArray(searched) && searched.includes("email")) {
    (isList ? report.at("fts") : report.at("fts").at("fields")).say("cannot name email, which others may not see");
  }
  for (const [place, index] of Array.isArray(indexes) ? indexes.entries() : []) {
    const fields = member(index, "fields");
    if (!Array.isArray(fields)) continue;
    const at = report.at("indexes").at(place);
    if (fields.includes("email")) at.at("fields").say("cannot name email, which others may not see");
    if (member(index, "unique") !== true) continue;
    const isFree = (name: unknown) => {
      const field = ownMember(own, String(name));
      return isPlainObject(field) && (field["default"] === undefined || field["default"] === null);
    };
    if (!fields.every(isFree))
      at.at("unique").say("is for fields of your own without a default: others could refuse an account");
  }
}

/** Checks the references of a table's fields to the table of users, whose records go with accounts. `report`: of the schema. */
function checkReferring(schema: unknown, users: unknown, report: Report): void {
  if (!isPlainObject(schema)) return;
  const columns = Object.entries(schema).map(([name, field]) => {
    const check = member(field, "check");
    return { name, field: typeof check === "string" ? { check } : null };
  });
  const compared = checkedFields(columns);
  for (const [name, field] of Object.entries(schema)) {
    const references = member(field, "references");
    if (!isPlainObject(field) || (member(references, "table") ?? references) !== users) continue;
    const at = report.at(name);
    const onDelete = field["onDelete"] ?? member(references, "onDelete");
    const column = member(references, "column") ?? "id";
    if (column !== "id") at.at("references").at("column").say("must be id, or left out: users are referred to by id");
    if (onDelete === undefined) {
      const choices = field["type"] === "references" ? "remove or restrict" : "setNull, cascade or restrict";
      at.at("onDelete").say(`is required beside a reference to users, who delete their accounts: ${choices}`);
    } else if (onDelete === "remove" && field["required"] === true) {
      at.at("onDelete").say("cannot be remove, since the field is required, and an account goes all the same");
    } else if ((onDelete === "setNull" || onDelete === "set null") && compared.some((names) => names.has(name))) {
      at.at("onDelete").say(
        "cannot be setNull, since a check names the field: it could refuse null, and an account goes all the same",
      );
    }
  }
}
