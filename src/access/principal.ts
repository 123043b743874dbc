import type { Auth } from "../config/types.ts";
import { type Actor, SERVER_ACTOR, SERVER_CALLER } from "../db/index.ts";
import { clientNetwork } from "../kernel/client-network.ts";
import type { Scopes } from "./scopes.ts";

/** The caller of a request, read once from its headers. Every service takes it as an argument. */
export type Principal =
  | { kind: "anonymous" }
  | { kind: "user"; auth: Auth; sessionId: string }
  | { kind: "serviceKey"; name: string; scopes: Scopes }
  /** The server itself: hooks, rooms and embedding code. Rules do not apply to it; validation and limits do. */
  | { kind: "server" };

export const ANONYMOUS: Principal = { kind: "anonymous" };
export const SERVER: Principal = { kind: "server" };

/** The `auth` argument of rules: null unless the caller is a user. */
export function authOf(principal: Principal): Auth | null {
  return principal.kind === "user" ? principal.auth : null;
}

/**
 * The caller whose share of long reads a request uses: the user, the service key, or the client's address (for IPv6, its
 * /64). `address` is called for anonymous requests only. [DB120]
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

/** The caller, as triggers and webhooks name who caused a change. */
export function actorOf(principal: Principal): Actor {
  switch (principal.kind) {
    case "user":
      return { user: principal.auth.id };
    case "serviceKey":
      return { key: principal.name };
    case "server":
      return SERVER_ACTOR;
    case "anonymous":
      return null;
  }
}
