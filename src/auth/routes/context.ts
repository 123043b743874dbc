import type { Principal } from "../../access/principal.ts";
import type { RequestContext } from "../../http/http.ts";
import { notFound, unauthorized } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/json.ts";
import type { Caller, Client } from "../types.ts";

/** Errors: 401 for everybody who is not a signed-in user. */
export function callerOf(principal: Principal): Caller {
  if (principal.kind !== "user") throw unauthorized();
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
export async function optionalBody({ request, jsonObject }: RequestContext): Promise<JsonObject> {
  const length = request.headers.get("content-length");
  const isEmpty = length === "0" || (length === null && request.headers.get("transfer-encoding") === null);
  return isEmpty ? {} : jsonObject();
}

/** Errors: 404 for a way of signing in that the config does not switch on. */
export function requireEnabled(isEnabled: boolean, what: string): void {
  if (!isEnabled) throw notFound(`${what} is not enabled`);
}
