import { AppError, type FieldProblem, type FieldProblems } from "../../../../kernel/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from "../../../../kernel/json/json.ts";
import type { TableAddress } from "../../../access/table-door.ts";
import type { RecordFile, TableRecord } from "../../../config/types.ts";
import type { FileColumn, TableModel } from "../model/model.ts";
import { refuse } from "../model/validation.ts";

/** A file that a form has brought, before it belongs to a record. */
export type NewFile = Omit<RecordFile, "url">;

/** The files of a request's form by field. Their urls begin with `base`, the path of the table. */
export interface NewFiles {
  base: string;
  byField: ReadonlyMap<string, readonly NewFile[]>;
}

export const NO_FILES: NewFiles = { base: "", byField: new Map() };

/** Ids of stored files that an update keeps, in order, by field. Fields that it does not name keep all. */
export type KeptFiles = ReadonlyMap<string, readonly string[]>;

/** Members that a file may have when it is sent back. */
const MEMBERS: readonly string[] = ["id", "name", "size", "type", "url"] satisfies (keyof RecordFile)[];

/** Returns the files of a stored value, of an answer, or of what a hook returns; nothing of any other value. */
export function filesIn(value: JsonValue | undefined): RecordFile[] {
  const all: readonly JsonValue[] = Array.isArray(value) ? value : [value ?? null];
  // Only the id is relied on, until it is compared with a known one.
  return all.filter((one) => isJsonObject(one) && typeof one["id"] === "string") as RecordFile[];
}

/** Returns the value of a field with these files. */
export const fieldValue = ({ file }: FileColumn, files: readonly RecordFile[]): JsonValue =>
  file.many === null ? (files[0] ?? null) : [...files];

/** Returns the path of a table. */
export function baseOf({ namespace, instanceId, table }: TableAddress): string {
  const segments = instanceId === null ? [namespace] : [namespace, instanceId];
  return ["/api/db", ...segments.map(encodeURIComponent), "tables", encodeURIComponent(table)].join("/");
}

export const urlOf = (base: string, recordId: string, field: string, fileId: string): string =>
  `${base}/${encodeURIComponent(recordId)}/files/${encodeURIComponent(field)}/${fileId}`;

/** Returns the new files of a field as values of a record. */
export function newFilesOf({ base, byField }: NewFiles, { name }: FileColumn, recordId: string): RecordFile[] {
  return (byField.get(name) ?? []).map((file) => ({ ...file, url: urlOf(base, recordId, name, file.id) }));
}

/** Returns the problem of a value in an insert, which has no files yet; null: it is none. [TB724] */
export function insertProblem({ name, file }: FileColumn, value: JsonValue | undefined): FieldProblem | null {
  if (value === undefined || value === null || (file.many !== null && Array.isArray(value) && value.length === 0)) {
    return null;
  }
  return { code: "invalid_value", message: `${name} takes a file of a form (multipart/form-data), not a value` };
}

/**
 * Returns the ids that a value in an update keeps, or the problem of the value. null keeps none. Objects are files as they were
 * answered; only their id counts. [TB725]
 */
export function keptIds({ name, file }: FileColumn, value: JsonValue): readonly string[] | FieldProblem {
  if (value === null) return [];
  const isList = Array.isArray(value);
  const wanted =
    file.many === null ? "null, or the file as it was answered" : "null, or an array of files with their id";
  if (isList !== (file.many !== null)) return { code: "invalid_type", message: `${name} must be ${wanted}` };
  const ids: string[] = [];
  for (const one of isList ? value : [value]) {
    if (!isJsonObject(one) || typeof one["id"] !== "string") {
      return { code: "invalid_type", message: `${name} must be ${wanted}` };
    }
    const unknown = Object.keys(one).find((member) => !MEMBERS.includes(member));
    if (unknown !== undefined)
      return { code: "unknown_field", message: `${name}: ${unknown} is not a member of a file` };
    if (ids.includes(one["id"])) return { code: "invalid_value", message: `${name} names a file twice` };
    ids.push(one["id"]);
  }
  return ids;
}

/**
 * Returns the values that an update gives to fields of files: what it keeps of the stored ones, and its new files. Errors: 400 for
 * an id that the record's field does not have, for too many files, and for none of a required field. [TB725]
 */
export function updatedFiles(
  model: TableModel,
  { kept, added, isTrial }: { kept: KeptFiles; added: NewFiles; isTrial: boolean },
  stored: TableRecord,
): TableRecord {
  const changes: TableRecord = {};
  const problems: FieldProblems = {};
  for (const column of model.files) {
    const { name, file } = column;
    const ids = kept.get(name);
    const fresh = newFilesOf(added, column, String(stored["id"]));
    if (ids === undefined && fresh.length === 0) continue;
    const present = filesIn(ownValue(stored, name) ?? null);
    const left = ids === undefined ? present : ids.flatMap((id) => present.find((one) => one.id === id) ?? []);
    const next = file.many === null && fresh.length > 0 ? fresh : [...left, ...fresh];
    // In a trial the new files are not known yet.
    const counted = isTrial ? null : countProblem(column, next.length);
    const problem = ids !== undefined && left.length < ids.length ? unknownFile(name) : counted;
    if (problem !== null) problems[name] = problem;
    changes[name] = fieldValue(column, next);
  }
  if (Object.keys(problems).length > 0) refuse(problems);
  return changes;
}

const unknownFile = (name: string): FieldProblem => ({
  code: "invalid_value",
  message: `${name} names a file that this field of the record does not have`,
});

/** Returns the problem of a field with so many files; null: it may have them. */
export function countProblem({ name, field, file }: FileColumn, count: number): FieldProblem | null {
  const most = file.many ?? 1;
  if (count === 0 && field?.required === true) return { code: "required", message: `${name} is required` };
  if (count <= most) return null;
  return {
    code: "too_long",
    message: `${name} must have at most ${most} ${most === 1 ? "file" : "files"}, got ${count}`,
  };
}

/**
 * Returns a record, or the changes of one, with the known values of its files in place of those that a hook or other code has made.
 * `known`: records of which it may have the files. Errors: 400 for other files. [TB726]
 */
export function withKnownFiles<Values extends JsonObject>(
  model: TableModel,
  values: Values,
  known: readonly TableRecord[],
  { idBefore, id }: { idBefore: string; id: string } = { idBefore: "", id: "" },
): Values {
  if (model.files.length === 0) return values;
  const checked: JsonObject = { ...values };
  for (const column of model.files) {
    const { name } = column;
    const value = ownValue(values, name);
    if (value === undefined) continue;
    const allowed = new Map(
      known.flatMap((record) => filesIn(ownValue(record, name) ?? null)).map((one) => [one.id, one]),
    );
    const files = filesIn(value).flatMap((one) => allowed.get(one.id) ?? []);
    const count = Array.isArray(value) ? value.length : value === null ? 0 : 1;
    const problem = files.length < count ? unknownFile(name) : countProblem(column, count);
    if (problem !== null) refuse({ [name]: problem });
    const isRenamed = id !== idBefore;
    checked[name] = fieldValue(
      column,
      isRenamed
        ? files.map((one) => ({ ...one, url: urlOf(baseIn(one.url, idBefore, name), id, name, one.id) }))
        : files,
    );
  }
  return checked as Values; // The same members.
}

const baseIn = (url: string, recordId: string, field: string): string =>
  url.slice(0, url.lastIndexOf(urlOf("", recordId, field, "")));

/** Returns the error for a file of another type than its field takes. */
export function wrongType(field: string, types: readonly string[], found: string): AppError {
  const message = `${field} must be ${types.join(" or ")}, got ${found}`;
  return new AppError(415, message, { data: { [field]: { code: "invalid_value", message } } });
}
