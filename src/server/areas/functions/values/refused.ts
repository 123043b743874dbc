import { ValidationError } from "elysia";
import {
  type AppError,
  badRequest,
  type FieldProblem,
  type FieldProblems,
  noProblems,
} from "../../../../kernel/errors.ts";
import { fieldsError } from "../../../../kernel/fields.ts";
import { FAULTS_MAX } from "../limits.ts";
import type { Fault } from "./run.ts";

export type PartName = "body" | "query" | "params" | "headers" | "cookie" | "message";

const PARTS: Readonly<Record<PartName, string>> = {
  body: "The body",
  query: "The query",
  params: "The path",
  headers: "The headers",
  cookie: "The cookies",
  message: "The message",
};

/** A fault as a validator of another library reports it. */
export interface StandardIssue {
  message: string;
  path?: readonly (PropertyKey | { key: PropertyKey })[] | undefined;
}

/** The answers to errors that are created here. */
const answers = new WeakMap<object, AppError>();

/** Returns the answer to a validation error; for an error created elsewhere, one without details. */
export const answerTo = (error: ValidationError): AppError =>
  answers.get(error) ?? badRequest("The request is not valid");

export function refusedFaults(part: PartName, faults: readonly Fault[]): ValidationError {
  const [first] = faults;
  return refused(part, faults, first === undefined ? undefined : customMessage(first, part));
}

export function refusedIssues(part: PartName, issues: readonly StandardIssue[]): ValidationError {
  const faults = issues.slice(0, FAULTS_MAX).map(({ message, path = [] }): Told => {
    const names = path.map((step) => String(typeof step === "object" ? step.key : step));
    return { field: names.join("."), code: "invalid_value", message: message.slice(0, 1_000) };
  });
  return refused(part, faults, undefined);
}

type Told = Pick<Fault, "field" | "code" | "message">;

/** Creates an error like Elysia's own, for hooks of a config, without the refused value. */
function refused(part: PartName, faults: readonly Told[], custom: string | undefined): ValidationError {
  const error = new Error(custom ?? JSON.stringify({ type: "validation", on: part }));
  const all = faults.map(({ field, message }) => ({
    path: field === "" ? "" : `/${field.replaceAll(".", "/")}`,
    message,
    summary: field === "" ? message : `${field} ${message}`,
  }));
  const [valueError] = all;
  const own = { type: part, code: "VALIDATION", status: 422, valueError, customError: custom };
  Object.assign(error, own);
  // Replaces a getter of Elysia's class, which would validate again.
  Object.defineProperty(error, "all", { value: all });
  Object.defineProperty(error, "validator", { value: { "~standard": {} } });
  Object.setPrototypeOf(error, ValidationError.prototype);
  answers.set(error, answerOf(part, faults));
  return error as ValidationError;
}

function answerOf(part: PartName, faults: readonly Told[]): AppError {
  const problems: FieldProblems = noProblems();
  const whole = faults.find(({ field }) => field === "");
  for (const { field, code, message } of faults) {
    if (field !== "") problems[field] ??= { code, message: `${field} ${message}` } satisfies FieldProblem;
  }
  const told = whole === undefined ? "" : `: it ${whole.message}`;
  return fieldsError(problems) ?? badRequest(`${PARTS[part]} is not valid${told}`);
}

/** Returns the message that a schema's author has set for a refused value. */
function customMessage({ schema, field, message }: Fault, part: PartName): string | undefined {
  const { error } = schema;
  if (error === undefined) return undefined;
  const known = { type: "validation", on: part, property: `/${field.replaceAll(".", "/")}`, message, errors: [] };
  const custom: unknown = typeof error === "function" ? error(known, { schema }) : error;
  return typeof custom === "object" ? JSON.stringify(custom) : String(custom);
}
