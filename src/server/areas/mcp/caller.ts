import { timingSafeEqual } from "node:crypto";
import { AppError, forbidden, unauthorized } from "../../../kernel/errors.ts";
import type { MaybePromise } from "../../../kernel/maybe-promise.ts";
import { isLoopbackAddress } from "../../../kernel/network/addresses.ts";
import { ACT_AS_HEADER } from "../../access/acting.ts";
import { EVERY_SCOPE } from "../../access/keys/scopes.ts";
import type { Principal } from "../../access/principal.ts";
import { SERVICE_KEY_HEADER } from "../../access/principals.ts";
import { ownOrigin } from "../../http/exchange/own-origin.ts";
import { isKeyScope } from "./rights.ts";

/** Key that `platform dev` prints. */
export interface DevelopmentKey {
  readonly key: string;
}

export interface CallerDeps {
  /** Whether the config declares `mcp`. */
  isDeclared: boolean;
  /** null outside of development. */
  development: DevelopmentKey | null;
  rootKey: string;
  /** Origin of `server.publicUrl`; null without one. */
  publicOrigin: string | null;
  identify(request: Pick<Request, "headers">, address: () => string): MaybePromise<Principal>;
}

/** Caller of a tool, and the credentials with which its requests are sent. */
export interface AgentCaller {
  readonly principal: Extract<Principal, { kind: "user" | "serviceKey" }>;
  readonly credentials: Headers;
}

const CREDENTIALS = ["authorization", SERVICE_KEY_HEADER, ACT_AS_HEADER] as const;
/** Headers of requests that a proxy has passed on. */
const FORWARDED = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via", "cf-connecting-ip"] as const;
const LOCAL = new Set(["localhost", "127.0.0.1", "[::1]"]);
const CHALLENGE = { "www-authenticate": "Bearer" };

/**
 * Identifies the caller. Errors: 401 with `WWW-Authenticate`, also for nobody; 403 for a foreign `Origin`, the key of development from
 * elsewhere, and a service key without a scope of `mcp`.
 */
export async function callerOf(deps: CallerDeps, request: Request, address: () => string): Promise<AgentCaller> {
  requireOwnOrigin(deps, request, address);
  const credentials = new Headers();
  for (const name of CREDENTIALS) {
    const value = request.headers.get(name);
    if (value !== null) credentials.set(name, value);
  }
  const isDevelopmentKey = deps.development !== null && isKey(deps.development.key, credentials);
  if (isDevelopmentKey) {
    if (!isLocal(request, address)) throw forbidden("The key of development is taken from this machine alone");
    credentials.delete("authorization");
    credentials.set(SERVICE_KEY_HEADER, deps.rootKey);
  } else if (!deps.isDeclared) {
    throw unauthenticated("The key that platform dev prints is required");
  }
  const principal = await identified(deps, credentials, address);
  if (principal.kind !== "user" && principal.kind !== "serviceKey") throw unauthenticated();
  if (principal.kind === "serviceKey" && principal.scopes !== EVERY_SCOPE) {
    if (!principal.scopes.texts.some((scope) => isKeyScope(scope, "mcp"))) throw forbidden();
  }
  return { principal, credentials };
}

async function identified(deps: CallerDeps, headers: Headers, address: () => string): Promise<Principal> {
  try {
    return await deps.identify({ headers }, address);
  } catch (cause) {
    if (cause instanceof AppError && cause.status === 401) throw unauthenticated(cause.message);
    throw cause;
  }
}

const unauthenticated = (message = unauthorized().message): AppError =>
  new AppError(401, message, { headers: CHALLENGE });

/** Whether the credentials are this key: as a token, or as a service key. */
function isKey(key: string, credentials: Headers): boolean {
  const bearer = /^bearer (.*)$/i.exec(credentials.get("authorization") ?? "")?.[1]?.trim();
  const digest = (text: string) => Bun.SHA256.hash(text) as Uint8Array;
  return [credentials.get(SERVICE_KEY_HEADER), bearer].some(
    (given) => given != null && timingSafeEqual(digest(given), digest(key)),
  );
}

/** Whether the request comes from a program of this machine, and not through a proxy on it. */
const isLocal = (request: Request, address: () => string): boolean =>
  isLoopbackAddress(address()) && !FORWARDED.some((name) => request.headers.has(name));

/**
 * Refuses requests that a page of another site has sent. In development a page may have the name of its own host lead to this machine:
 * there both names must be local. Errors: 403.
 */
function requireOwnOrigin(deps: CallerDeps, request: Request, address: () => string): void {
  const origin = request.headers.get("origin");
  if (deps.development !== null && isLocal(request, address)) {
    const isLocalName = (text: string) => LOCAL.has(URL.parse(text)?.hostname ?? "");
    if (!isLocalName(`http://${request.headers.get("host") ?? ""}`)) throw forbidden("The Host must be a local one");
    if (origin !== null && !isLocalName(origin)) throw forbidden("The Origin must be a local one");
    return;
  }
  if (origin === null || origin === deps.publicOrigin || origin === ownOrigin(request)) return;
  throw forbidden("The Origin is not this server's");
}
