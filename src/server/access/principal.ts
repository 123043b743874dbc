import { clientNetwork } from "../../kernel/network/addresses.ts";
import type { AuditActor } from "../../kernel/observing/request-trace.ts";
import type { Auth } from "../config/types.ts";
import { type Actor, SERVER_ACTOR, SERVER_CALLER } from "../db/index.ts";
import type { Scopes } from "./keys/scopes.ts";

/** The caller of a request, read once from its headers. Every service takes it as an argument. */
export type Principal =
  | { kind: "anonymous"; actedBy?: ActedBy }
  /** `tokenVersion`: of the presented access token; absent without one. */
  | { kind: "user"; auth: Auth; sessionId: string; tokenVersion?: number; actedBy?: ActedBy }
  /** `session`: the administrator's session that the key was signed in with; absent for the key itself. */
  | { kind: "serviceKey"; name: string; scopes: Scopes; session?: string }
  /** The server itself: hooks, rooms and embedding code. Rules do not apply to it; validation and limits do. */
  | { kind: "server" };

/** The actor behind a user or nobody: the root key, or an administrator's session of it. */
export interface ActedBy {
  key: string;
  /** The administrator's session, as in the principal of a service key. */
  session?: string | undefined;
}

/** Returns the caller's own key, or that of whoever acts as the caller; null: there is none. */
export function keyBehind(principal: Principal): ActedBy | null {
  if (principal.kind === "serviceKey") return { key: principal.name, session: principal.session };
  return principal.kind === "server" ? null : (principal.actedBy ?? null);
}

export const ANONYMOUS: Principal = { kind: "anonymous" };
export const SERVER: Principal = { kind: "server" };

/** Returns the `auth` argument of rules: null unless the caller is a user. */
export function authOf(principal: Principal): Auth | null {
  return principal.kind === "user" ? principal.auth : null;
}

/**
 * Names the caller whose share of long reads a request uses: the user, the service key, or the client's address (for IPv6, its
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

/** Returns the caller as triggers and webhooks name the author of a change. */
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

/** Returns the caller as the audit log names it; null for those whose changes are not audited: users, visitors, the server. */
export function auditActorOf(principal: Principal): AuditActor | null {
  if (principal.kind === "server") return null;
  if (principal.kind === "serviceKey") return keyActor(principal.name, principal.session);
  const { actedBy } = principal;
  if (actedBy === undefined) return null;
  const as = principal.kind === "user" ? principal.auth.id : "anonymous";
  return { ...keyActor(actedBy.key, actedBy.session), as };
}

const keyActor = (name: string, session: string | undefined): AuditActor => ({
  kind: session === undefined ? "serviceKey" : "admin",
  name,
});
