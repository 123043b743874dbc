import { isJsonObject, type JsonObject } from "../../../../kernel/json/json.ts";

/** A field of a collection, with the options of its type. */
export interface PbField {
  name: string;
  type: string;
  isHidden: boolean;
  isRequired: boolean;
  options: JsonObject;
}

export type PbAction = "list" | "view" | "create" | "update" | "delete";

/** A collection. A rule that is null lets only superusers in, an empty one everybody. */
export interface PbCollection {
  id: string;
  name: string;
  type: "base" | "auth" | "view";
  fields: readonly PbField[];
  indexes: readonly string[];
  rules: Readonly<Record<PbAction, string | null>>;
  options: JsonObject;
  /** Whether the file has the form of releases before 0.23. */
  isFormer: boolean;
}

export const textOption = (options: JsonObject, name: string): string => {
  const value = options[name];
  return typeof value === "string" ? value : "";
};

export const numberOption = (options: JsonObject, name: string): number => {
  const value = options[name];
  return typeof value === "number" ? value : 0;
};

export const textsOption = (options: JsonObject, name: string): string[] => {
  const value = options[name];
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
};

/** Returns a rule of the options: null where it lets only superusers in. */
export const ruleOption = (options: JsonObject, name: string): string | null => {
  const value = options[name];
  return typeof value === "string" ? value : null;
};

/** Whether a field of several values has one at most. */
export const isSingle = ({ options }: PbField): boolean => numberOption(options, "maxSelect") <= 1;

/** Fields that an account has elsewhere, in the order of what they say. */
export const ACCOUNT_FIELDS: ReadonlySet<string> = new Set([
  "id",
  "password",
  "tokenKey",
  "email",
  "emailVisibility",
  "verified",
]);

type Row = Readonly<Record<string, unknown>>;

const parsed = (value: unknown): unknown => {
  try {
    return JSON.parse(String(value));
  } catch {
    return null;
  }
};

const ruleIn = (row: Row, name: string): string | null => {
  const value = row[name];
  return typeof value === "string" ? value : null;
};

function fieldOf(value: unknown, isFormer: boolean): PbField[] {
  if (!isJsonObject(value) || typeof value["name"] !== "string" || typeof value["type"] !== "string") return [];
  const { name, type } = value;
  const nested = isFormer && isJsonObject(value["options"]) ? value["options"] : {};
  return [
    {
      name,
      type,
      isHidden: value["hidden"] === true,
      isRequired: value["required"] === true,
      options: { ...value, ...nested, ...(isFormer ? formerOptions(type, nested) : {}) },
    },
  ];
}

/** Options that releases before 0.23 wrote in another way. A relation without `maxSelect` has any number of values there. */
function formerOptions(type: string, options: JsonObject): JsonObject {
  if (type === "number") return { onlyInt: options["noDecimal"] === true };
  if (type === "relation" && typeof options["maxSelect"] !== "number") return { maxSelect: Number.MAX_SAFE_INTEGER };
  return {};
}

const automatic = (name: string, type: string, options: JsonObject = {}): PbField => ({
  name,
  type,
  isHidden: false,
  isRequired: false,
  options: { name, type, ...options },
});

/** The fields that releases before 0.23 do not list. */
function formerFields(type: string): PbField[] {
  if (type === "view") return [];
  const account = [
    automatic("username", "text"),
    automatic("email", "email"),
    automatic("emailVisibility", "bool"),
    automatic("verified", "bool"),
  ];
  return [
    ...(type === "auth" ? account : []),
    automatic("created", "autodate", { onCreate: true }),
    automatic("updated", "autodate", { onCreate: true, onUpdate: true }),
  ];
}

/** Returns the collection of a row of `_collections`, of any release from 0.20; null: one of PocketBase's own. */
export function collectionOf(row: Row): PbCollection | null {
  const { id, name, type } = row;
  const isOwn = Boolean(row["system"]) && String(name).startsWith("_");
  if (isOwn || typeof id !== "string" || typeof name !== "string") return null;
  if (type !== "base" && type !== "auth" && type !== "view") return null;
  const isFormer = row["fields"] === undefined;
  const listed = parsed(row["fields"] ?? row["schema"]);
  const fields = (Array.isArray(listed) ? listed : []).flatMap((field) => fieldOf(field, isFormer));
  const indexes = parsed(row["indexes"]);
  const options = parsed(row["options"]);
  const given = isJsonObject(options) ? options : {};
  return {
    id,
    name,
    type,
    fields: isFormer ? [...fields, ...formerFields(type)] : fields,
    indexes: Array.isArray(indexes) ? indexes.map(String) : [],
    rules: {
      list: ruleIn(row, "listRule"),
      view: ruleIn(row, "viewRule"),
      create: ruleIn(row, "createRule"),
      update: ruleIn(row, "updateRule"),
      delete: ruleIn(row, "deleteRule"),
    },
    options: isFormer ? formerAuthOptions(given) : given,
    isFormer,
  };
}

/** Options of an auth collection of releases before 0.23, in the form of later ones. */
function formerAuthOptions(options: JsonObject): JsonObject {
  const { query, onlyVerified } = options;
  return {
    ...options,
    authRule: onlyVerified === true ? "verified = true" : "",
    ...(typeof query === "string" ? { viewQuery: query } : {}),
  };
}
