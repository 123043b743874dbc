import type { RequestContext } from "../../http/http.ts";
import { notFound, unauthorized } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/json.ts";
import type { Caller, Client } from "../types.ts";

/** Being signed in is all the right that is wanted here; the form comes next. Errors: 401, 400 for an unknown query parameter. */
export function callerOf({ principal, query }: Pick<RequestContext, "principal" | "query">): Caller {
  if (principal.kind !== "user") throw unauthorized();
  query().refuseUnknown();
  return { userId: principal.auth.id, sessionId: principal.sessionId };
}

export function clientOf({ address, request, principal }: RequestContext): Client {
  return {
    address: address(),
    userAgent: request.headers.get("user-agent"),
    isLimited: principal.kind !== "serviceKey" && principal.kind !== "server",
  };
}

/** The body where a request may come without one. */
export async function optionalBody({ request, query, jsonObject }: RequestContext): Promise<JsonObject> {
  const length = request.headers.get("content-length");
  const isEmpty = length === "0" || (length === null && request.headers.get("transfer-encoding") === null);
  if (!isEmpty) return jsonObject();
  query().refuseUnknown();
  return {};
}

/** Errors: 404 for a way of signing in that the config does not switch on. */
export function requireEnabled(isEnabled: boolean, what: string): void {
  if (!isEnabled) throw notFound(`${what} is not enabled`);
}
