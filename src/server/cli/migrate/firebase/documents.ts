import { isJsonObject, type JsonObject, type JsonValue } from "../../../../kernel/json/json.ts";
import { instantOf } from "../../../../kernel/time/iso-datetime.ts";
import { CommandError } from "../../errors.ts";
import type { Remarks } from "../remarks.ts";
import type { PgColumn, PgForeignKey, PgRow, PgTable } from "../supabase/source.ts";

const NEW_LINE = 10;
const KEY = "id";
const ID_SEPARATOR = "~";

/** A document: its collection, with those around it, and its id, with theirs. */
interface Place {
  collection: string;
  id: string;
}

/** Returns the place of a path such as `films/abc/reviews/r1`; null: it is none of a document. */
export function placeOf(path: string): Place | null {
  const parts = path.replace(/^.*\/documents\//, "").split("/");
  if (parts.length < 2 || parts.length % 2 === 1 || parts.includes("")) return null;
  const of = (rest: number): string[] => parts.filter((_, index) => index % 2 === rest);
  return { collection: of(0).join("_"), id: of(1).join(ID_SEPARATOR) };
}

/** Collections of a file with one document a line. */
export interface Documents {
  tables: readonly PgTable[];
  rows(name: string): Iterable<PgRow>;
}

type Kind = "boolean" | "integer" | "number" | "text" | "instant" | "reference" | "json";

interface Field {
  kinds: Set<Kind>;
  /** Collections to which references go. */
  targets: Set<string>;
  isMissing: number;
}

interface Collection {
  /** Places of the lines in the file. */
  lines: [start: number, end: number][];
  fields: Map<string, Field>;
  ids: Set<string>;
}

/** Reads a file of lines `{ path, data }`. Errors: CommandError that names the line. */
export function readDocuments(file: string, remarks: Remarks): Documents {
  const bytes = Bun.file(file).size === 0 ? new Uint8Array() : Bun.mmap(file);
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const textOf = ([start, end]: readonly [number, number]): string => decoder.decode(bytes.subarray(start, end));
  const collections = new Map<string, Collection>();
  let count = 0;
  for (let at = 0; at < bytes.byteLength; ) {
    const found = bytes.indexOf(NEW_LINE, at);
    const line: [number, number] = [at, found < 0 ? bytes.byteLength : found];
    at = line[1] + 1;
    count += 1;
    if (textOf(line).trim() === "") continue;
    const document = documentOf(textOf(line));
    if (document === null) throw new CommandError(`${file}: line ${count} is no { path, data } of a document`);
    const { place, data } = document;
    const collection: Collection = collections.get(place.collection) ?? {
      lines: [],
      fields: new Map(),
      ids: new Set(),
    };
    if (collection.ids.has(place.id)) throw new CommandError(`${file}: line ${count} has a path that was there before`);
    collection.ids.add(place.id);
    collection.lines.push(line);
    survey(collection.fields, data);
    collections.set(place.collection, collection);
  }
  const made = new Map([...collections].map(([name, collection]) => [name, tableOf(name, collection, collections)]));
  return {
    tables: [...made.values()].map(({ table }) => table),
    *rows(name) {
      const collection = collections.get(name);
      const kinds = made.get(name)?.kinds;
      const dangling = new Map<string, number>();
      for (const line of collection?.lines ?? []) {
        const document = documentOf(textOf(line));
        if (document === null || kinds === undefined) continue;
        const row: Record<string, string | null> = { [KEY]: document.place.id };
        for (const [field, { column, kind, target }] of kinds) {
          const value = document.data[field] ?? null;
          const text = textIn(value, kind);
          const isLost = text !== null && target !== null && collections.get(target)?.ids.has(text) !== true;
          if (isLost) dangling.set(field, (dangling.get(field) ?? 0) + 1);
          row[column] = isLost ? null : text;
        }
        yield row;
      }
      for (const [field, lost] of dangling) {
        remarks.lost(`${name}.${field}`, `${lost} references to documents that do not exist: they are null`);
      }
    },
  };
}

function documentOf(line: string): { place: Place; data: JsonObject } | null {
  try {
    const value: unknown = JSON.parse(line);
    if (!isJsonObject(value) || typeof value["path"] !== "string" || !isJsonObject(value["data"])) return null;
    const place = placeOf(value["path"]);
    return place === null ? null : { place, data: value["data"] };
  } catch {
    return null;
  }
}

const typeOf = (value: JsonValue): string | null =>
  isJsonObject(value) && typeof value["__type__"] === "string" ? value["__type__"] : null;

function kindOf(value: JsonValue): Kind {
  if (typeof value === "boolean") return "boolean";
  if (typeof value === "string") return "text";
  if (typeof value === "number") return Number.isSafeInteger(value) ? "integer" : "number";
  const type = typeOf(value);
  if (!isJsonObject(value)) return "json";
  if (type === "timestamp" && instantOf(String(value["value"])) !== null) return "instant";
  return type === "reference" && placeOf(String(value["path"])) !== null ? "reference" : "json";
}

function survey(fields: Map<string, Field>, data: JsonObject): void {
  for (const [name, value] of Object.entries(data)) {
    if (value === null) continue;
    const field = fields.get(name) ?? { kinds: new Set(), targets: new Set(), isMissing: 0 };
    const kind = kindOf(value);
    field.kinds.add(kind);
    if (kind === "reference" && isJsonObject(value))
      field.targets.add(placeOf(String(value["path"]))?.collection ?? "");
    fields.set(name, field);
  }
}

/** Returns the one kind of a field: JSON where its values are of several. */
function oneKind({ kinds, targets }: Field): Kind {
  const [only] = kinds;
  if (kinds.size === 1 && only !== undefined) return only === "reference" && targets.size > 1 ? "text" : only;
  return [...kinds].every((kind) => kind === "integer" || kind === "number") ? "number" : "json";
}

const TYPES: Readonly<Record<Kind, string>> = {
  boolean: "boolean",
  integer: "bigint",
  number: "double precision",
  text: "text",
  instant: "timestamp with time zone",
  reference: "text",
  json: "jsonb",
};

type Kinds = ReadonlyMap<string, { column: string; kind: Kind; target: string | null }>;

function tableOf(
  name: string,
  { fields }: Collection,
  collections: ReadonlyMap<string, Collection>,
): { table: PgTable; kinds: Kinds } {
  const columns: PgColumn[] = [];
  const foreignKeys: PgForeignKey[] = [];
  const kinds = new Map<string, { column: string; kind: Kind; target: string | null }>();
  const add = (column: string, type: string, isNotNull: boolean): void =>
    void columns.push({ name: column, type, isNotNull, default: null, isGenerated: false, isIdentity: false });
  add(KEY, "text", true);
  for (const [field, facts] of fields) {
    // The id of a document is no field of it.
    const column = field.toLowerCase() === KEY ? `${field}_field` : field;
    const kind = oneKind(facts);
    const [target = null] = kind === "reference" ? facts.targets : [];
    add(column, TYPES[kind], false);
    const known = target !== null && collections.has(target) ? target : null;
    kinds.set(field, { column, kind, target: known });
    if (known === null) continue;
    foreignKeys.push({
      columns: [column],
      target: { schema: "public", name: known },
      targetColumns: [],
      onDelete: "set null",
    });
  }
  const table: PgTable = {
    schema: "public",
    name,
    columns,
    primaryKey: [KEY],
    uniques: [],
    indexes: [],
    foreignKeys,
    checks: [],
    // Without policies, for nobody.
    isSecured: true,
    policies: [],
    grants: [],
  };
  return { table, kinds };
}

function textIn(value: JsonValue, kind: Kind): string | null {
  if (value === null) return null;
  switch (kind) {
    case "boolean":
      return value === true ? "t" : "f";
    case "instant":
      return isJsonObject(value)
        ? (instantOf(String(value["value"]))?.replace("T", " ").replace("Z", "+00") ?? null)
        : null;
    case "reference":
      return isJsonObject(value) ? (placeOf(String(value["path"]))?.id ?? null) : null;
    case "json":
      return JSON.stringify(plainly(value));
    case "text":
      return typeof value === "string" ? value : String(plainly(value));
    case "integer":
    case "number":
      return String(value);
    default:
      return kind satisfies never;
  }
}

/** Returns a value in which instants are texts, points `{ lat, lng }`, and references paths. */
function plainly(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(plainly);
  if (!isJsonObject(value)) return value;
  switch (typeOf(value)) {
    case "timestamp":
      return instantOf(String(value["value"])) ?? String(value["value"]);
    case "geopoint":
      return { lat: Number(value["latitude"]), lng: Number(value["longitude"]) };
    case "reference":
      return String(value["path"]);
    default:
      return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plainly(member)]));
  }
}
