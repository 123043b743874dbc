import type { Auth } from "../config/types.ts";
import { SERVER_CALLER } from "../db/index.ts";
import { clientNetwork } from "../kernel/client-network.ts";
import type { Scopes } from "./scopes.ts";

/** Who asks. Made once per request from its headers; every service takes it as an argument. */
export type Principal =
  | { kind: "anonymous" }
  | { kind: "user"; auth: Auth; sessionId: string }
  | { kind: "serviceKey"; name: string; scopes: Scopes }
  /** The server itself: hooks, rooms and embedders. Passes rules, obeys validation and limits. */
  | { kind: "server" };

export const ANONYMOUS: Principal = { kind: "anonymous" };
export const SERVER: Principal = { kind: "server" };

/** What rules get: null without a token. */
export function authOf(principal: Principal): Auth | null {
  return principal.kind === "user" ? principal.auth : null;
}

/**
 * Whose share of long reads a request takes: the user's, the service key's, or that of the client's address (of IPv6, its
 * /64). `address` is asked for anonymous requests alone. [DB120]
 */
export function callerNameOf(principal: Principal, address: () => string): string {
  switch (principal.kind) {
    case "user":
      return `user ${principal.auth.id}`;
    case "serviceKey":
      return `key ${principal.name}`;
    case "server":
      return SERVER_CALLER.callerName;
    case "anonymous":
      return `address ${clientNetwork(address())}`;
  }
}
