import {
  type Context,
  ElysiaCustomStatusResponse,
  InvalidCookieSignature,
  InvalidFileType,
  NotFoundError,
  ParseError,
  ValidationError,
} from "elysia";
import {
  AppError,
  badField,
  badRequest,
  type FieldCode,
  type FieldProblem,
  type FieldProblems,
  noProblems,
  notFound,
} from "../../kernel/errors.ts";
import { fieldsError } from "../../kernel/fields.ts";
import { FAULTS_MAX } from "../limits.ts";
import { placeOf } from "../routes/elysia-classes.ts";
import { type Call, callOf } from "./call.ts";
import type { Serving } from "./performing.ts";

/**
 * What Elysia calls with every error that no `onError` of the config has answered: the body of the answer. A request that no route
 * took comes here as well.
 */
export function createOnFailure(serving: () => Serving | null) {
  // By name: Elysia reads from the source of a function what it takes, and parses the body for one that may take all of its context.
  return ({ request, set, error }: Context & { error: unknown }): unknown => {
    const call = callOf(request);
    const server = serving();
    if (call === undefined || server === null) throw error;
    if (call.route === null && error instanceof NotFoundError) return unroutedAnswer(call, server);
    const failure = failureOf(error);
    // An answer of the config's own: Elysia sends it.
    if (failure === null) return error;
    const { status, body, headers } = server.http.failureReply(failure, request, call.requestId);
    set.status = status;
    Object.assign(set.headers, headers, { "content-type": "application/json" });
    return body;
  };
}

function unroutedAnswer({ request, requestId }: Call, { http, unrouted }: Serving): Response {
  try {
    return unrouted.answer(request, new URL(request.url).pathname);
  } catch (cause) {
    return http.failure(cause, request, requestId);
  }
}

/**
 * The error that answers what a route threw. `null`: Elysia's own `status(…)`, which is an answer already. What this returns
 * unchanged, and is no `AppError`, is logged and answered 500.
 */
function failureOf(cause: unknown): unknown {
  if (cause instanceof AppError) return cause;
  if (cause instanceof ElysiaCustomStatusResponse) return null;
  if (cause instanceof ParseError) return parseFailure(cause);
  if (cause instanceof ValidationError) return cause.type === "response" ? wrongAnswer(cause) : invalid(cause);
  if (cause instanceof InvalidCookieSignature) return badRequest("A cookie has no valid signature");
  if (cause instanceof InvalidFileType) return wrongFile(cause);
  if (cause instanceof NotFoundError) return notFound("Not found");
  return cause;
}

function parseFailure({ cause }: ParseError): AppError {
  return cause instanceof AppError ? cause : badRequest("The body cannot be parsed");
}

/** A file whose content is of another type than the schema says: Elysia names it `body.FIELD`. */
function wrongFile({ property, expected }: InvalidFileType): AppError {
  const field = property.replace(/^body\./, "");
  return badField(field, "invalid_value", `${field}: its content must be ${[expected].flat().join(" or ")}`);
}

/** Without the answer itself, which Elysia's error has: it may hold what no log should. */
function wrongAnswer(error: ValidationError): Error {
  const [fault] = faultsOf(error);
  return new Error(`the answer breaks the route's response schema: ${fault?.path ?? ""} ${fault?.message ?? ""}`);
}

/** Elysia's `property` of these is the part of the request. */
const PARTS: Readonly<Record<string, string>> = {
  body: "The body",
  query: "The query",
  params: "The path",
  headers: "The headers",
  cookie: "The cookies",
};

function invalid(error: ValidationError): AppError {
  const problems: FieldProblems = noProblems();
  let whole: string | null = null;
  let count = 0;
  const place = placeOf(error);
  for (const { path = "", message = "", type, value } of faultsOf(error)) {
    if (++count > FAULTS_MAX) break;
    const field = `${place}${path}`.split("/").slice(1).map(unescaped).join(".");
    if (field === "") whole ??= message;
    else if (!(field in problems))
      problems[field] = problemOf(field, value === undefined ? "required" : codeOf(type), message);
  }
  const part = PARTS[error.type] ?? "The request";
  return fieldsError(problems) ?? badRequest(`${part} is not valid${whole === null ? "" : `: ${whole}`}`);
}

interface Fault {
  path?: string;
  message?: string;
  value?: unknown;
  /** A number of TypeBox's `ValueErrorType`. */
  type?: number;
}

function* faultsOf(error: ValidationError): Iterable<Fault> {
  const { validator, value } = error as unknown as { validator: unknown; value: unknown };
  if (typeof validator === "object" && validator !== null && "Errors" in validator && !("~standard" in validator)) {
    const { Errors } = validator as { Errors(value: unknown): Iterable<Fault> };
    // Not `error.all`, which collects all of them and repeats values.
    yield* Errors.call(validator, value);
    return;
  }
  yield* error.all as readonly Fault[];
}

function problemOf(field: string, code: FieldCode, message: string): FieldProblem {
  if (code === "required") return { code, message: `${field} is required` };
  if (code === "unknown_field") return { code, message: `${field} is not a member that is known here` };
  return { code, message: `${field}: ${message}` };
}

const unescaped = (segment: string): string => segment.replaceAll("~1", "/").replaceAll("~0", "~");

/** By TypeBox's `ValueErrorType`, which Elysia does not export. Others are `invalid_value`. */
const CODES: Readonly<Record<number, FieldCode>> = {
  2: "too_long",
  4: "too_short",
  6: "invalid_type",
  14: "invalid_type",
  22: "too_large",
  23: "too_small",
  24: "too_large",
  25: "too_small",
  27: "invalid_type",
  // Of `refusingUnknown`: no value is right for a member that the schema does not name.
  33: "unknown_field",
  35: "invalid_type",
  36: "too_large",
  37: "too_small",
  38: "too_large",
  39: "too_small",
  41: "invalid_type",
  42: "unknown_field",
  45: "required",
  46: "invalid_type",
  51: "too_long",
  52: "too_short",
  53: "pattern_mismatch",
  54: "invalid_type",
};

const codeOf = (type: number | undefined): FieldCode => CODES[type ?? -1] ?? "invalid_value";
