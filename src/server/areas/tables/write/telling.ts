import { AppError, badRequest, forbidden, Refusal, unauthorized } from "../../../../kernel/errors.ts";
import type { Principal } from "../../../access/principal.ts";
import type { TableRecord } from "../../../config/types.ts";
import type { NewFiles } from "../files/values.ts";
import { UNREAD_INCREMENT_MAX } from "../limits.ts";
import type { TableModel } from "../model/model.ts";
import { RecordTooLarge, roughBytes } from "../model/record-size.ts";
import type { Patch } from "./changes.ts";

// Bounds what a write reveals to a caller that may not read the record: only what was sent, whether it succeeds or not.

/**
 * Returns a changed field whose outcome depends on stored values, so that success or failure would reveal them: an increment of a
 * field with bounds, an id of several references that is added or removed, a value that a `check` compares with a field that was not
 * sent, or files beside stored ones. null: there is none. [TB113] [TB730]
 */
export function dependingField(
  model: TableModel,
  { values, increments, listed, kept }: Patch,
  files: NewFiles,
): string | null {
  // The number of ids, and which ones are there, decide.
  for (const name of listed.keys()) return name;
  for (const [name, amount] of increments) if (isBounded(model, name, amount)) return name;
  for (const { name, file } of model.files) {
    const ids = kept.get(name);
    const isAdded = file.many !== null && ids === undefined && files.byField.has(name);
    if (isAdded || (ids !== undefined && ids.length > 0)) return name;
  }
  const isKnown = (name: string): boolean =>
    Object.hasOwn(values, name) || KNOWN.includes(name) || model.byName.get(name)?.field?.onUpdate !== undefined;
  for (const fields of model.checks) {
    const sent = [...fields].find((name) => Object.hasOwn(values, name) || increments.has(name));
    if (sent !== undefined && ![...fields].every(isKnown)) return sent;
  }
  return null;
}

/** Fields whose value after a change the caller knows. */
const KNOWN = ["id", "updatedAt"];

function isBounded({ isSchemaless, byName }: TableModel, name: string, amount: number): boolean {
  const column = byName.get(name);
  // In a schemaless table the type of the member decides.
  if (isSchemaless || column === undefined) return true;
  const { field, type } = column;
  if (field?.min !== undefined || field?.max !== undefined || field?.enum !== undefined) return true;
  // An integer is bounded by 2^53: large steps would find the stored one by bisection.
  return type === "integer" && Math.abs(amount) > UNREAD_INCREMENT_MAX;
}

/** Returns the refusal of such a change: 401 without credentials, 403 with them. */
export function mayNotTell({ kind }: Principal, field: string): AppError {
  const message = `Access denied: whether ${field} can be changed so depends on stored values, which you may not read`;
  return kind === "anonymous" ? unauthorized(message) : forbidden(message);
}

/** Returns the error with only what was sent; `cause` itself when it has nothing else. [TB117] */
export function toldOfSent(cause: unknown, sent: TableRecord): unknown {
  if (!(cause instanceof AppError) || cause instanceof Refusal || cause.data === undefined) return cause;
  if (cause instanceof RecordTooLarge) return tooLargeWith(cause, sent);
  const problems = Object.entries(cause.data);
  // A missing field reveals nothing.
  const told = problems.filter(([name, { code }]) => Object.hasOwn(sent, name) || code === "required");
  if (told.length === problems.length) return cause;
  const [first] = told;
  const message =
    cause.status === 409 ? "Another record has these values" : (first?.[1].message ?? "The record would not be valid");
  return new AppError(cause.status, message, { data: Object.fromEntries(told) });
}

/** Returns the error with the largest field that was sent, and no size. */
function tooLargeWith({ maxBytes }: RecordTooLarge, sent: TableRecord): AppError {
  const message = `A record must have at most ${maxBytes} bytes of JSON`;
  let [largest, most] = ["", -1];
  for (const name in sent) {
    const bytes = roughBytes(sent[name] ?? null);
    if (bytes > most) [largest, most] = [name, bytes];
  }
  return badRequest(message, most < 0 ? {} : { [largest]: { code: "too_large", message } });
}
