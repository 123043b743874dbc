import { badRequest, type FieldProblems } from "../../../../kernel/errors.ts";
import { type JsonObject, type JsonValue, ownValue } from "../../../../kernel/json/json.ts";
import { instantOf } from "../../../../kernel/time/iso-datetime.ts";
import type { TableRecord } from "../../../config/types.ts";
import { type KeptFiles, keptIds, type NewFiles, updatedFiles } from "../files/values.ts";
import { PROBLEMS_MAX } from "../limits.ts";
import { formerTexts, withInstants } from "../model/instants.ts";
import { DOCUMENT_COLUMN, type FileColumn, type TableModel } from "../model/model.ts";
import { isOperator, noInstant, refuse, type Validator } from "../model/validation.ts";
import { profileProblems } from "./profile.ts";

/** Fields that the server sets. A client may send them back with a whole record; they are ignored. [TB25] */
const SERVER_FIELDS = ["id", "createdAt", "updatedAt"];
/** Fields of the table of users that are ignored in the same way: the account has endpoints for them. */
const ACCOUNT_FIELDS = ["email", "isAnonymous"];

/** Changes of a request: values, and operators that need the stored record. */
export interface Patch {
  values: TableRecord;
  /** Texts of datetimes that stay as they are where they are the stored ones. `values` has the instants of those that have one. */
  former: ReadonlyMap<string, string>;
  increments: ReadonlyMap<string, number>;
  /** Changes of several references by one id. */
  listed: ReadonlyMap<string, ListedChange>;
  /** Fields to delete: null in a column, absent in a schemaless record. */
  deletions: readonly string[];
  kept: KeptFiles;
  /** Returns the names of all members of the body, ignored ones too. */
  sent(): readonly string[];
}

/** An id that is added to the end of several references, or taken out. */
interface ListedChange {
  kind: "add" | "remove";
  id: string;
}

/** Returns the names of the members of a body. Undefined ones, which the server's own code may pass, are left out. */
export const sentNames = (body: JsonObject): readonly string[] =>
  Object.keys(body).filter((name) => body[name] !== undefined);

/** Parses the changes in a body. Errors: 400 naming each unknown field or operator and each invalid value. [TB25] [TB27] */
export function parsePatch(model: TableModel, validator: Validator, body: JsonObject): Patch {
  const increments = new Map<string, number>();
  const listed = new Map<string, ListedChange>();
  const deletions: string[] = [];
  const kept = new Map<string, readonly string[]>();
  const leftOut: string[] = [];
  const problems: FieldProblems = {};
  let problemCount = 0;
  if (Object.hasOwn(body, "__proto__")) refuseProto();
  for (const name in body) {
    const value = body[name];
    const isIgnored =
      (SERVER_FIELDS.includes(name) && (model.isSchemaless || name === "id" || model.byName.has(name))) ||
      (model.isUsers && ACCOUNT_FIELDS.includes(name));
    // Undefined members, which the server's own code may pass, are left out.
    if (value === undefined || isIgnored) {
      leftOut.push(name);
      continue;
    }
    const files = fileColumn(model, name);
    if (files !== null) {
      leftOut.push(name);
      const ids = keptIds(files, isFieldDeletion(value) ? null : value);
      if ("code" in ids) problems[name] = ids;
      else kept.set(name, ids);
      continue;
    }
    if (!isOperator(value)) continue;
    leftOut.push(name);
    const operator = parseOperator(model, name, value);
    if (operator.kind === "problem") {
      problems[name] = operator.problem;
      // An answer names no more of them.
      if (++problemCount === PROBLEMS_MAX) refuse(problems);
    } else if (operator.kind === "increment") increments.set(name, operator.amount);
    else if (operator.kind !== "deleteField") listed.set(name, operator);
    else deletions.push(name);
  }
  // One copy at most: a body may have tens of thousands of members.
  const sent: TableRecord = leftOut.length === 0 ? body : { ...body };
  for (const name of leftOut) delete sent[name];
  for (const name of deletions) if (!model.isSchemaless) sent[name] = null;
  const former = formerTexts(model, sent);
  const values = withoutNull(model, withInstants(model, sent));
  const found = validator.ofChanges(values);
  // These are compared with the stored record.
  if (found !== null) for (const name of former.keys()) delete found[name];
  Object.assign(problems, { ...(model.isUsers ? profileProblems(values) : null), ...found, ...problems });
  if (Object.keys(problems).length > 0) refuse(problems);
  return { values, former, increments, listed, deletions, kept, sent: () => sentNames(body) };
}

/**
 * Returns the patch with the stored text of a datetime where that was sent back. Only who may read the record may compare: to others
 * the outcome would tell the text. Errors: 400 for another text without an offset. [TB684]
 */
export function settledPatch(patch: Patch, stored: TableRecord, isReadable: () => boolean): Patch {
  if (patch.former.size === 0) return patch;
  const mayCompare = isReadable();
  const values = { ...patch.values };
  const problems: FieldProblems = {};
  for (const [name, text] of patch.former) {
    if (mayCompare && stored[name] === text) values[name] = text;
    else if (instantOf(text) === null) problems[name] = noInstant(name, text);
  }
  if (Object.keys(problems).length > 0) refuse(problems);
  return { ...patch, values, former: NO_TEXTS };
}

const NO_TEXTS: Patch["former"] = new Map();

function fileColumn({ files }: TableModel, name: string): FileColumn | null {
  return files.length === 0 ? null : (files.find((column) => column.name === name) ?? null);
}

const isFieldDeletion = (value: JsonValue): boolean =>
  isOperator(value) && value["$op"] === "deleteField" && Object.keys(value).length === 1;

type Operator =
  | { kind: "increment"; amount: number }
  | { kind: "deleteField" }
  | ListedChange
  | { kind: "problem"; problem: FieldProblems[string] };

const OPERATORS = ["increment", "deleteField", "add", "remove"] as const;

function parseOperator(model: TableModel, name: string, value: JsonObject): Operator {
  const problem = (code: FieldProblems[string]["code"], message: string): Operator => ({
    kind: "problem",
    problem: { code, message },
  });
  const column = model.byName.get(name);
  if (column === undefined && !model.isSchemaless)
    return problem("unknown_field", `${name} is not a field of this table`);
  const operator = value["$op"];
  const known = OPERATORS.find((one) => one === operator);
  if (known === undefined) {
    return problem("invalid_value", `${name}: ${JSON.stringify(operator)} is not one of ${OPERATORS.join(", ")}`);
  }
  const members = known === "deleteField" ? ["$op"] : ["$op", "value"];
  const unknown = Object.keys(value).find((member) => !members.includes(member));
  if (unknown !== undefined) return problem("unknown_field", `${name}: ${unknown} is not a member of ${known}`);
  if (known === "deleteField") return { kind: known };
  const amount = value["value"];
  if (known !== "increment") {
    if (column === undefined || column.links === null) {
      return problem("invalid_type", `${name} has not several references, to which ${known} applies`);
    }
    if (typeof amount !== "string") return problem("invalid_type", `${name}: ${known} takes an id as its value`);
    return { kind: known, id: amount };
  }
  if (typeof amount !== "number") return problem("invalid_type", `${name}: increment takes a number as its value`);
  if (column !== undefined && column.type !== "number" && column.type !== "integer") {
    return problem("invalid_type", `${name} is not numeric and cannot be incremented`);
  }
  if (column?.type === "integer" && !Number.isSafeInteger(amount)) {
    return problem("invalid_type", `${name}: increment takes a whole number as its value`);
  }
  return { kind: "increment", amount };
}

/**
 * Returns the changed fields with their new values; `patch.values` itself if that is all. `files`: those of the request's form.
 * Errors: 400 for an increment, or an id, beyond a field's bounds, and for files that the record cannot have.
 */
export function resolvePatch(
  { model, validator }: { model: TableModel; validator: Validator },
  patch: Patch,
  { stored, files, isTrial }: { stored: TableRecord; files: NewFiles; isTrial: boolean },
): TableRecord {
  const changes = incremented(validator, patch, stored);
  if (model.files.length === 0) return changes;
  return { ...changes, ...updatedFiles(model, { kept: patch.kept, added: files, isTrial }, stored) };
}

function incremented(validator: Validator, patch: Patch, stored: TableRecord): TableRecord {
  if (patch.increments.size + patch.listed.size === 0) return patch.values;
  const changed: TableRecord = {};
  for (const [name, change] of patch.listed) {
    const ids = idsAfter(stored[name] ?? null, change);
    // An id that is there already, or is not there, changes nothing.
    if (ids !== null) changed[name] = ids;
  }
  for (const [name, amount] of patch.increments) {
    const present: JsonValue = ownValue(stored, name) ?? 0;
    if (typeof present !== "number") {
      return refuse({ [name]: { code: "invalid_type", message: `${name} is not a number and cannot be incremented` } });
    }
    changed[name] = present + amount;
    if (!Number.isFinite(changed[name])) throw badRequest(`${name} would exceed the range of numbers`);
  }
  const problems = validator.ofChanges(changed);
  if (problems !== null) refuse(problems);
  return { ...patch.values, ...changed };
}

/** Returns several references after a change by one id; null when it changes nothing. */
function idsAfter(stored: JsonValue, { kind, id }: ListedChange): JsonValue[] | null {
  const ids = Array.isArray(stored) ? stored : [];
  if (ids.includes(id) === (kind === "add")) return null;
  return kind === "add" ? [...ids, id] : ids.filter((one) => one !== id);
}

/** Returns the values with `[]` in place of null for several references, which are never null. */
export function withoutNull(model: TableModel, values: TableRecord): TableRecord {
  const cleared = model.several.filter((name) => values[name] === null);
  return cleared.length === 0 ? values : { ...values, ...Object.fromEntries(cleared.map((name) => [name, []])) };
}

/** Returns the record with the changes applied. */
export function applyChanges(
  model: TableModel,
  stored: TableRecord,
  changes: TableRecord,
  deletions: readonly string[],
): TableRecord {
  const next = { ...stored, ...changes };
  if (model.isSchemaless) for (const name of deletions) delete next[name];
  return next;
}

/**
 * Returns the body as a record with defaults, in the declared order. Unknown fields are kept, so that the validation names them.
 */
export function withDefaults(model: TableModel, body: JsonObject, auto: { id: string; now: string }): TableRecord {
  if (Object.hasOwn(body, "__proto__")) refuseProto();
  const given = (name: string, fallback: JsonValue): JsonValue => {
    const value = ownValue(body, name);
    return value === undefined ? fallback : value;
  };
  // Members are copied at once: one by one, those of a large document take four times as long.
  const record: TableRecord = model.isSchemaless ? { id: auto.id, ...body } : {};
  for (const { name, field, links } of model.columns) {
    if (links !== null) record[name] = given(name, null) ?? [];
    else if (field !== null) record[name] = given(name, field.default ?? (field.onUpdate === "now" ? auto.now : null));
    else if (name === "id") record[name] = given(name, auto.id);
    else if (name !== DOCUMENT_COLUMN) record[name] = given(name, auto.now);
  }
  if (!model.isSchemaless) addUnknown(record, model, body);
  return withInstants(model, record);
}

/** Adds unknown fields to the record, no more of them than an answer names. */
function addUnknown(record: TableRecord, model: TableModel, body: JsonObject): void {
  let count = 0;
  for (const name in body) {
    const value = body[name];
    if (value === undefined || model.byName.has(name)) continue;
    record[name] = value;
    if (++count > PROBLEMS_MAX) break;
  }
}

/** Refuses operators in inserts and upserts, since they need a stored record. Errors: 400. */
export function refuseOperators(body: JsonObject): void {
  // Takes half as long as `Object.entries`, and a body has no inherited members.
  for (const name in body) {
    if (!isOperator(body[name])) continue;
    refuse({ [name]: { code: "invalid_value", message: `${name}: operators work in updates only` } });
  }
}

/** Refuses the name `__proto__`: assigning to it would set the prototype. */
function refuseProto(): never {
  return refuse(Object.fromEntries([["__proto__", { code: "unknown_field", message: "__proto__ cannot be a field" }]]));
}

/** Returns `updatedAt` and the fields with `onUpdate: "now"`. */
export function serverChanges(model: TableModel, now: string): TableRecord {
  const changes: TableRecord = {};
  for (const { name, field } of model.columns) if (field?.onUpdate === "now") changes[name] = now;
  if (model.hasUpdatedAt) changes["updatedAt"] = now;
  return changes;
}
