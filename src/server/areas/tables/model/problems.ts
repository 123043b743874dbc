import { AppError, badRequest, conflict, type FieldCode, type FieldProblems } from "../../../../kernel/errors.ts";
import type { TableModel } from "./model.ts";

/** Returns the API error for a violated constraint of SQLite; null for any other error. [TB23] [TB29] [TB30] */
export function constraintProblem(model: TableModel, cause: unknown): AppError | null {
  if (!(cause instanceof Error)) return null;
  const unique = /^UNIQUE constraint failed: (.+)$/.exec(cause.message);
  if (unique !== null) return notUnique((unique[1] ?? "").split(", ").map((name) => name.slice(name.indexOf(".") + 1)));
  const check = /^CHECK constraint failed: (.+)$/s.exec(cause.message);
  if (check !== null) return checkFailed(model, check[1] ?? "");
  if (cause.message.startsWith("FOREIGN KEY constraint failed")) {
    return conflict("Another record refers to this one, or this one to a record that does not exist");
  }
  return null;
}

function notUnique(fields: readonly string[]): AppError {
  const data: FieldProblems = {};
  for (const field of fields) data[field] = { code: "not_unique", message: `${field} is already taken` };
  return conflict(`A record with this ${fields.join(" and ")} exists already`, data);
}

function checkFailed(model: TableModel, expression: string): AppError {
  const column = model.columns.find((one) => one.field?.check?.trim() === expression);
  const message = `The record violates a condition of this table: ${column?.field?.check ?? expression}`;
  return badRequest(message, column === undefined ? {} : { [column.name]: { code: "check_failed", message } });
}

/** Codes by status, for an operation that failed as a whole. */
const CODES: Readonly<Record<number, FieldCode>> = {
  400: "invalid_value",
  404: "not_found",
  409: "conflict",
  412: "condition_failed",
  413: "too_large",
};

/** Errors that already name their operation. */
const placed = new WeakSet<object>();

/** Marks an error as already naming its operation. */
export function markPlaced(cause: unknown): void {
  if (cause instanceof AppError) placed.add(cause);
}

/**
 * Returns the error with its fields below the operation's place, such as `inserts.3.title`. Fields may have a place of their own,
 * such as `operations.3.data`. [TB36] [TB306]
 */
export function atOperation(cause: unknown, place: string | { operation: string; fields: string }): unknown {
  if (!(cause instanceof AppError) || placed.has(cause)) return cause;
  const { operation, fields } = typeof place === "string" ? { operation: place, fields: place } : place;
  const data: FieldProblems = {};
  for (const [field, problem] of Object.entries(cause.data ?? {})) data[`${fields}.${field}`] = problem;
  if (Object.keys(data).length === 0) {
    data[operation] = { code: CODES[cause.status] ?? "access_denied", message: cause.message };
  }
  const named = new AppError(cause.status, `${operation}: ${cause.message}`, { data, headers: cause.headers });
  markPlaced(named);
  return named;
}
