import {
  type Context,
  ElysiaCustomStatusResponse,
  InvalidCookieSignature,
  InvalidFileType,
  NotFoundError,
  ParseError,
  ValidationError,
} from "elysia";
import { AppError, badField, badRequest, notFound } from "../../../../kernel/errors.ts";
import { answerTo } from "../values/refused.ts";
import { type Call, callOf } from "./call.ts";
import type { Serving } from "./performing.ts";

/**
 * Creates the handler that Elysia calls with every error that no `onError` of the config has answered; it returns the body of the
 * answer. A request that matches no route comes here as well.
 */
export function createOnFailure(serving: () => Serving | null) {
  // Destructured: Elysia detects from a function's source which members it takes, and parses the body for one that may take all of
  // its context.
  return ({ request, set, error }: Context & { error: unknown }): unknown => {
    const call = callOf(request);
    const server = serving();
    if (call === undefined || server === null) throw error;
    if (call.route === null && error instanceof NotFoundError) return unroutedAnswer(call, server);
    const failure = failureOf(error);
    // An answer of the config itself: Elysia sends it.
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
 * Maps an error of a route to the error that answers it. `null`: Elysia's own `status(…)`, which is an answer already. An error
 * that is returned unchanged, and is no `AppError`, is logged and answered 500.
 */
function failureOf(cause: unknown): unknown {
  if (cause instanceof AppError) return cause;
  if (cause instanceof ElysiaCustomStatusResponse) return null;
  if (cause instanceof ParseError) return parseFailure(cause);
  if (cause instanceof ValidationError) return cause.type === "response" ? wrongAnswer(cause) : answerTo(cause);
  if (cause instanceof InvalidCookieSignature) return badRequest("A cookie has no valid signature");
  if (cause instanceof InvalidFileType) return wrongFile(cause);
  if (cause instanceof NotFoundError) return notFound("Not found");
  return cause;
}

/** Returns the reason of a failed parse. Elysia wraps that of a route with a `parse` of its own once more. */
function parseFailure({ cause }: ParseError): AppError {
  if (cause instanceof ParseError) return parseFailure(cause);
  return cause instanceof AppError ? cause : badRequest("The body cannot be parsed");
}

/** Describes a file whose content differs from the schema's type: Elysia names it `body.FIELD`. */
function wrongFile({ property, expected }: InvalidFileType): AppError {
  const field = property.replace(/^body\./, "");
  return badField(field, "invalid_value", `${field}: its content must be ${[expected].flat().join(" or ")}`);
}

/** Copies the error without the answer that Elysia's error contains: it may be secret. */
function wrongAnswer(error: ValidationError): Error {
  const [fault] = error.all as readonly { path?: string; message?: string }[];
  return new Error(`the answer breaks the route's response schema: ${fault?.path ?? ""} ${fault?.message ?? ""}`);
}
