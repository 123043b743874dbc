import type { Auth } from "../config/types.ts";
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
