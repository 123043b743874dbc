import { RECORD_SIZE_MAX_BYTES } from "../../../config/limits.ts";
import type { DeclaredIndex } from "../config-source.ts";
import { tableNames } from "../names.ts";
import type { Remarks } from "../remarks.ts";
import { ACCOUNT_FIELDS, type PbCollection, type PbField } from "./collections.ts";
import { type FieldPlace, fieldName, type MovedField, movedField } from "./fields.ts";
import { filesSurvey } from "./files.ts";
import type { PbSource } from "./source.ts";
import { NO_FACTS, type RecordIds, type Survey, surveyOf } from "./survey.ts";

const RECORD_DEFAULT_MAX_BYTES = 1024 * 1024;

/** A collection and the table that it becomes. */
export interface MovedTable {
  collection: PbCollection;
  name: string;
  /** `users`: the table of the accounts; `accounts`: one beside it, whose records belong to accounts of the role `name`. */
  kind: "records" | "users" | "accounts";
  fields: readonly MovedField[];
  /** The table for hidden fields; null: there are none. */
  hidden: { name: string; fields: readonly MovedField[] } | null;
  /** The fields that become `createdAt` and `updatedAt`; null: there is none. */
  times: { createdAt: string | null; updatedAt: string | null };
  indexes: readonly DeclaredIndex[];
  rows: number;
  maxRecordSize: number | null;
}

export interface MovePlan {
  tables: readonly MovedTable[];
  views: readonly PbCollection[];
  users: MovedTable | null;
}

/** Plans the tables of a source. */
export function planOf(source: PbSource, remarks: Remarks): MovePlan {
  const stored = source.collections.filter(({ type }) => type !== "view");
  const views = source.collections.filter(({ type }) => type === "view");
  const users = primaryOf(source, stored);
  const ids = recordIds(source, stored, users);
  const surveys = new Map(stored.map((collection) => [collection.id, surveyOf(source, collection, ids)]));
  const names = tableNames(source.collections, remarks);
  const tables = stored.map((collection) => {
    const survey = surveys.get(collection.id) ?? { rows: 0, largestBytes: 0, fields: new Map() };
    const kind = collection === users ? "users" : collection.type === "auth" ? "accounts" : "records";
    return movedTable(source, { collection, survey, kind, names, users, remarks });
  });
  return { tables, views, users: tables.find(({ kind }) => kind === "users") ?? null };
}

/** Returns the collection that becomes the accounts: `users`, else the largest. */
function primaryOf(source: PbSource, stored: readonly PbCollection[]): PbCollection | null {
  const auth = stored.filter(({ type }) => type === "auth");
  const rows = ({ name }: PbCollection): number => source.count(name);
  const largest = [...auth].sort((a, b) => rows(b) - rows(a))[0] ?? null;
  return auth.find(({ name }) => name === "users") ?? largest;
}

/** Returns the ids of records that can be moved: of accounts those with an address that no other one has. */
function recordIds(source: PbSource, stored: readonly PbCollection[], users: PbCollection | null): RecordIds {
  const ids = new Map<string, Set<string>>();
  const addresses = new Set<string>([""]);
  for (const collection of [...stored].sort((a, b) => Number(b === users) - Number(a === users))) {
    const known = new Set<string>();
    for (const row of source.rows(collection.name)) {
      const address = String(row["email"] ?? "").toLowerCase();
      if (collection.type === "auth" && addresses.has(address)) continue;
      if (collection.type === "auth") addresses.add(address);
      known.add(String(row["id"]));
    }
    ids.set(collection.id, known);
  }
  return ids;
}

interface TableParts {
  collection: PbCollection;
  survey: Survey;
  kind: MovedTable["kind"];
  names: ReadonlyMap<string, string>;
  users: PbCollection | null;
  remarks: Remarks;
}

function movedTable(source: PbSource, parts: TableParts): MovedTable {
  const { collection, survey, kind, names, users, remarks } = parts;
  const name = names.get(collection.id) ?? collection.name;
  const times = timesOf(collection);
  const own = collection.fields.filter((field) => !isElsewhere(collection, times, field));
  const taken = new Set<string>();
  const indexes = collection.indexes.flatMap((sql) => {
    const index = indexOf(sql);
    const isOfAccount = collection.type === "auth" && index?.fields.some((one) => ACCOUNT_FIELDS.has(one)) === true;
    if (index === null) remarks.lost(collection.name, `an index: ${sql.replace(/\s+/g, " ")}`);
    return index === null || isOfAccount ? [] : [index];
  });
  const stored = new Set(collections(names));
  const tableOf = (id: string): string | null =>
    stored.has(id) && !isView(source, id) ? (names.get(id) ?? null) : null;
  const moved = own.map((field): MovedField => {
    const found = fieldName(field, taken, kind === "users");
    taken.add(found.toLowerCase());
    const files = filesSurvey(source, collection, field);
    const facts = survey.fields.get(field.name) ?? NO_FACTS;
    const single = indexes.filter(
      ({ fields, isUnique }) => isUnique && fields.length === 1 && fields[0] === field.name,
    );
    const at: FieldPlace = {
      place: `${collection.name}.${field.name}`,
      facts: { ...facts, empty: facts.empty + files.missing },
      isOfUsers: kind === "users" && !field.isHidden,
      isUnique: single.some(({ isPartial, isWithoutEmpty }) => !isPartial || isWithoutEmpty),
      isUniqueWithoutEmpty: single.some(({ isWithoutEmpty }) => isWithoutEmpty),
      tableOf,
      usersTable: users === null ? null : (names.get(users.id) ?? null),
      files,
      remarks,
    };
    return movedField(field, found, at);
  });
  const isSecret = ({ source: field }: MovedField): boolean => field.isHidden || field.type === "password";
  const [open, secret] = [moved.filter((field) => !isSecret(field)), moved.filter(isSecret)];
  return {
    collection,
    name,
    kind,
    fields: open,
    hidden: secret.length === 0 ? null : { name: hiddenName(name, [...names.values()]), fields: secret },
    times,
    indexes: declaredIndexes({ collection, indexes, open, times, kind, remarks }),
    rows: survey.rows,
    maxRecordSize: sizeFor(survey.largestBytes),
  };
}

const collections = (names: ReadonlyMap<string, string>): Iterable<string> => names.keys();

const isView = ({ collections: all }: PbSource, id: string): boolean =>
  all.some((one) => one.id === id && one.type === "view");

const hiddenName = (table: string, names: readonly string[]): string => {
  let name = `${table.slice(0, 56)}_hidden`;
  while (names.some((one) => one.toLowerCase() === name.toLowerCase())) name += "_";
  return name;
};

/** Returns a bound with room for the largest record; null: the usual one is enough. */
const sizeFor = (bytes: number): number | null =>
  bytes * 2 <= RECORD_DEFAULT_MAX_BYTES ? null : Math.min(bytes * 2, RECORD_SIZE_MAX_BYTES);

/** Returns the fields that become the times of a record: those that PocketBase itself sets. */
function timesOf({ fields }: PbCollection): MovedTable["times"] {
  const named = (name: string): string | null =>
    fields.some((field) => field.name === name && field.type === "autodate" && !field.isHidden) ? name : null;
  return { createdAt: named("created"), updatedAt: named("updated") };
}

/** Whether the field is one that records or accounts have anyway. */
function isElsewhere({ type }: PbCollection, times: MovedTable["times"], { name }: PbField): boolean {
  if (name === "id" || name === times.createdAt || name === times.updatedAt) return true;
  return type === "auth" && ACCOUNT_FIELDS.has(name);
}

function declaredIndexes(parts: {
  collection: PbCollection;
  indexes: readonly NonNullable<ReturnType<typeof indexOf>>[];
  open: readonly MovedField[];
  times: MovedTable["times"];
  kind: MovedTable["kind"];
  remarks: Remarks;
}): DeclaredIndex[] {
  const { collection, indexes, open, times, kind, remarks } = parts;
  const declared = new Map<string, DeclaredIndex>();
  const add = (index: DeclaredIndex): void => void declared.set(JSON.stringify(index), index);
  for (const { fields, isUnique, isPartial, isWithoutEmpty } of indexes) {
    const found = fields.map((name) => indexed(name, open, times));
    const names = found.flatMap((name) => name ?? []);
    const text = `the index of ${fields.join(", ")}`;
    if (names.length < fields.length) {
      remarks.lost(collection.name, `${text}, as such a field has an index of its own, or is in another table`);
      continue;
    }
    const isPlainUnique = isUnique && (!isPartial || isWithoutEmpty);
    if (isUnique && !isPlainUnique)
      remarks.look(collection.name, `${text} was unique for some records, and is not here`);
    // The field itself says so.
    if (isPlainUnique && fields.length === 1 && open.some(({ source }) => source.name === fields[0])) continue;
    const isRefused = kind === "users" && isPlainUnique;
    if (isRefused) remarks.look(collection.name, `${text} is not unique here: it could refuse an account`);
    if (names.length === 1 && names[0] === "id") continue;
    add({ fields: names, ...(isPlainUnique && !isRefused ? { unique: true } : {}) });
  }
  return [...declared.values()];
}

/** Returns the name of a field that an index may have here. */
function indexed(name: string, open: readonly MovedField[], times: MovedTable["times"]): string | null {
  if (name === "id") return "id";
  if (name === times.createdAt) return "createdAt";
  if (name === times.updatedAt) return "updatedAt";
  const field = open.find(({ source }) => source.name === name);
  const isPlain =
    field !== undefined && !["references", "geo", "json", "choices", "file", "files"].includes(field.kind);
  return isPlain ? field.name : null;
}

/** An index as a collection declares it. */
interface PbIndex {
  fields: readonly string[];
  isUnique: boolean;
  /** Whether it is for some records alone. */
  isPartial: boolean;
  /** Whether it only leaves out records where the field is empty. */
  isWithoutEmpty: boolean;
}

const INDEX =
  /^\s*CREATE\s+(UNIQUE\s+)?INDEX\s+(?:IF\s+NOT\s+EXISTS\s+)?\S+\s+ON\s+\S+?\s*\((.*?)\)\s*(?:WHERE\s+(.*?))?;?\s*$/is;
const COLUMN = /^[`"[]?(\w+)[`"\]]?(?:\s+(?:ASC|DESC))?$/i;
const NOT_EMPTY = /^[`"[]?(\w+)[`"\]]?\s*(?:!=|<>)\s*(?:''|"")$/;

/** Reads the statement of an index; null: it is about more than plain columns. */
function indexOf(sql: string): PbIndex | null {
  const [, unique, list, where] = INDEX.exec(sql) ?? [];
  if (list === undefined) return null;
  const fields = list.split(",").map((column) => COLUMN.exec(column.trim())?.[1] ?? null);
  const names = fields.flatMap((name) => name ?? []);
  if (names.length !== fields.length) return null;
  const [, guarded] = NOT_EMPTY.exec(where?.trim() ?? "") ?? [];
  return {
    fields: names,
    isUnique: unique !== undefined,
    isPartial: where !== undefined,
    isWithoutEmpty: names.length === 1 && guarded === names[0],
  };
}
