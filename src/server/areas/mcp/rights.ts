import { EVERY_SCOPE } from "../../access/keys/scopes.ts";
import type { Principal } from "../../access/principal.ts";

type Action = "read" | "write";
type KeyPrincipal = Extract<Principal, { kind: "serviceKey" }>;

/** Right that a tool needs beside that of `mcp`. */
export type Need =
  /** Users, by the rules; service keys with a scope of this area and one of the actions. */
  | { kind: "rules"; area: string; actions: readonly string[] }
  /** Service keys with such a scope. */
  | { kind: "key"; area: string; actions: readonly string[] }
  /** Whoever may see the tables. */
  | { kind: "schema" }
  /** The root key. */
  | { kind: "root" };

export interface Asking {
  principal: Extract<Principal, { kind: "user" | "serviceKey" }>;
  /** Whether the address has `?write=1`. */
  isWriting: boolean;
  /** Whether this caller may see the tables where it has no scopes that name them. */
  maySeeSchema: boolean;
}

/** Whether a scope is of this area, and of this action where one is given. */
export function isKeyScope(scope: string, area: string, action?: string): boolean {
  const [ofArea, , , ofAction] = scope.split(":");
  return [area, "*"].includes(ofArea ?? "") && (action === undefined || [action, "*"].includes(ofAction ?? ""));
}

/**
 * Whether a caller may use a tool at all: which records it gets, its request decides. Users and keys of every right write only where the
 * address says so; other keys by a scope that names `mcp`, since one of all areas may be older than the tools.
 */
export function mayUse(asking: Asking, tool: { name: string; action: Action; need: Need }): boolean {
  const { principal, isWriting } = asking;
  if (principal.kind === "user") {
    if (tool.action === "write" && !isWriting) return false;
    return tool.need.kind === "rules" || (tool.need.kind === "schema" && asking.maySeeSchema);
  }
  if (principal.scopes === EVERY_SCOPE) return tool.action === "read" || isWriting;
  if (!principal.scopes.allows("mcp", "tool", tool.name, tool.action) || !isCovered(principal, tool.need)) return false;
  return tool.action === "read" || isWriting || principal.scopes.texts.some((scope) => scope.startsWith("mcp:"));
}

function isCovered({ scopes }: KeyPrincipal, need: Need): boolean {
  if (need.kind === "root") return false;
  if (need.kind === "schema") return scopes.texts.some((scope) => isKeyScope(scope, "db"));
  return scopes.texts.some((scope) => need.actions.some((action) => isKeyScope(scope, need.area, action)));
}
