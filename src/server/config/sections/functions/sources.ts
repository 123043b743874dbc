import { Type } from "typebox";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import type { AnyFilter, FilterOperator } from "../../records.ts";
import { describe, isPlainObject, type PlainObject, type Report } from "../../shape/report.ts";
import { checkedBy, list, related, text } from "../../shape/schema.ts";

export type TableEvent = "insert" | "update" | "delete";
export type FileEvent = "upload" | "delete";
export type AccountEvent = "signup" | "delete";

/** Changes of a table: `NAMESPACE.TABLE`; in a dynamic namespace, of all its instances. */
export interface TableSource {
  table: string;
  /** The events to react to. Default: all three. */
  events?: readonly TableEvent[];
}

/** Changes of a bucket. */
export interface BucketSource {
  bucket: string;
  /** The events to react to. Default: both. */
  events?: readonly FileEvent[];
}

/** Accounts that are created, by any means, or deleted. */
export interface AccountSource {
  auth: readonly AccountEvent[];
}

export type EventSource = TableSource | BucketSource | AccountSource;

/** The author of a change; null: a caller without credentials. */
export type ChangedBy = { user: string } | { key: string } | { server: true } | null;

/** The subject of a change: a record, the facts of a file, or a user. */
export type Subject = JsonObject;

const TABLE_EVENTS: readonly string[] = ["insert", "update", "delete"];
const FILE_EVENTS: readonly string[] = ["upload", "delete"];

const SourceShape = related(
  Type.Object({
    table: Type.Optional(text()),
    bucket: Type.Optional(text()),
    auth: Type.Optional(list(Type.Enum(["signup", "delete"]))),
    events: Type.Optional(list(text())),
  }),
  ({ table, bucket, auth, events }, report) => {
    if ([table, bucket, auth].filter((one) => one !== undefined).length !== 1) {
      report.say("must have one of table, bucket and auth");
      return;
    }
    if (!Array.isArray(events)) return;
    const at = report.at("events");
    if (auth !== undefined) at.say("is for table and bucket; name the events of accounts in auth");
    const known = table !== undefined ? TABLE_EVENTS : FILE_EVENTS;
    for (const [index, event] of events.entries()) {
      if (auth !== undefined || known.includes(event)) continue;
      at.at(index).say(`must be one of ${known.join(", ")}, got ${describe(event)}`);
    }
  },
);

export const eventSource = () => Type.Unsafe<EventSource>(SourceShape);

const OPERATORS: Readonly<Record<FilterOperator, true>> = {
  "==": true,
  "!=": true,
  ">": true,
  ">=": true,
  "<": true,
  "<=": true,
  contains: true,
  icontains: true,
  startsWith: true,
  istartsWith: true,
  within: true,
  inBox: true,
  in: true,
  "not in": true,
  has: true,
  hasAny: true,
  hasAll: true,
};

/** A filter, whose values are checked against the table when the server starts. */
export const sourceFilter = () =>
  checkedBy<AnyFilter>((value, report) => {
    if (!Array.isArray(value) && !isPlainObject(value)) {
      report.say(`must be a list of [field, operator, value], or a group, got ${describe(value)}`);
      return;
    }
    eachCondition(value, report, (tuple, at) => {
      if (!Array.isArray(tuple) || tuple.length !== 3 || typeof tuple[0] !== "string") {
        at.say("must be [field, operator, value], or a group");
      } else if (typeof tuple[1] !== "string" || !Object.hasOwn(OPERATORS, tuple[1])) {
        at.at(1).say(`must be one of ${Object.keys(OPERATORS).join(", ")}, got ${describe(tuple[1])}`);
      }
    });
  });

/**
 * Calls `visit` with each condition of a filter, inside of its groups too, and with what is neither. Relations name other tables: the
 * start checks them.
 */
function eachCondition(filter: unknown, report: Report, visit: (condition: unknown, at: Report) => void): void {
  if (!Array.isArray(filter)) visitElement(filter, report, visit);
  else for (const [index, element] of filter.entries()) visitElement(element, report.at(index), visit);
}

function visitElement(element: unknown, report: Report, visit: (condition: unknown, at: Report) => void): void {
  const [kind = "", ...others] = isPlainObject(element) ? Object.keys(element) : [];
  const inside = isPlainObject(element) && others.length === 0 ? element[kind] : undefined;
  if (kind === "not") eachCondition(inside, report.at(kind), visit);
  else if ((kind === "or" || kind === "and") && Array.isArray(inside)) {
    for (const [index, filter] of inside.entries()) eachCondition(filter, report.at(kind).at(index), visit);
  } else if ((kind !== "some" && kind !== "none") || !isPlainObject(inside)) visit(element, report);
}

const FILE_FIELDS: readonly string[] = ["key", "size", "contentType", "uploadedBy", "customMetadata", "uploaded"];

/** Checks the sources of triggers and webhooks against the tables and buckets of the same config. */
export function checkSources(config: PlainObject, report: Report): void {
  for (const section of ["triggers", "webhooks"]) {
    const declared = config[section];
    if (!isPlainObject(declared)) continue;
    for (const [name, entry] of Object.entries(declared)) {
      if (isPlainObject(entry) && isPlainObject(entry["on"])) checkSource(config, entry, report.at(section).at(name));
    }
  }
}

function checkSource(config: PlainObject, { on, filter }: PlainObject, report: Report): void {
  const { table, bucket } = on as PlainObject; // The caller has seen that it is one.
  const at = report.at("on");
  if (typeof table === "string") {
    const found = tableOf(config, table);
    if (typeof found === "string") at.at("table").say(found);
    else checkFields(filter, fieldsOf(found), report.at("filter"));
  } else if (typeof bucket === "string") {
    const buckets = isPlainObject(config["storage"]) ? config["storage"]["buckets"] : undefined;
    if (!isPlainObject(buckets) || !Object.hasOwn(buckets, bucket)) {
      at.at("bucket").say(`${describe(bucket)} is not a bucket of this config`);
    }
    checkFields(filter, FILE_FIELDS, report.at("filter"));
  }
}

/** Returns the declaration of a table, or the problem of its address. */
function tableOf({ databases }: PlainObject, address: string): PlainObject | string {
  const [namespace = "", table = "", ...rest] = address.split(".");
  if (table === "" || rest.length > 0) return `must be NAMESPACE.TABLE, got ${describe(address)}`;
  const declared = isPlainObject(databases) && Object.hasOwn(databases, namespace) ? databases[namespace] : undefined;
  if (!isPlainObject(declared)) return `${describe(namespace)} is not a namespace of this config`;
  const tables = declared["tables"];
  const found = isPlainObject(tables) && Object.hasOwn(tables, table) ? tables[table] : undefined;
  return isPlainObject(found) ? found : `${describe(table)} is not a table of ${namespace}`;
}

/** Returns the table's fields; null: without a schema, a record may have any field. */
function fieldsOf({ schema }: PlainObject): readonly string[] | null {
  if (!isPlainObject(schema)) return null;
  const automatic = ["createdAt", "updatedAt"].filter((name) => schema[name] !== false);
  return ["id", ...Object.keys(schema).filter((name) => schema[name] !== false), ...automatic];
}

function checkFields(filter: unknown, fields: readonly string[] | null, report: Report): void {
  if (filter === undefined || fields === null) return;
  eachCondition(filter, report, (tuple, at) => {
    const field: unknown = Array.isArray(tuple) ? tuple[0] : undefined;
    if (typeof field !== "string" || fields.includes(field.split(".")[0] ?? "")) return;
    const known = [...new Set(fields)].join(", ");
    at.at(0).say(`${describe(field)} is not a field; the fields are ${known}`);
  });
}
