import type { PlatformConfig } from "../config/types.ts";
import { MAX_AGE_SECONDS } from "./limits.ts";

const ALLOWED_HEADERS =
  "Authorization, Content-Type, X-Platform-Service-Key, Idempotency-Key, Range, If-Range, If-None-Match";
/** Headers of the nodes of a cluster, which a request may have, and which an answer may show. */
const CLUSTER_HEADERS = { allowed: "Platform-Position, Platform-Consistency", exposed: "Platform-Position" } as const;
const EXPOSED_HEADERS = "X-Request-Id, ETag, Content-Range, Retry-After, Idempotent-Replay";

/** Headers of every answer of a drill, so that the copy is not mistaken for the server. */
export const DRILL_HEADERS = { "x-platform-drill": "1" } as const;

export type Cors = ReturnType<typeof createCors>;

/** Creates the CORS policy. `always` are headers of every answer, with or without `Origin`; `isCluster`: scripts may use the headers of a cluster. */
export function createCors(
  config: PlatformConfig["cors"] = {},
  always: Readonly<Record<string, string>> = {},
  { isCluster = false } = {},
) {
  const allowed = config.origin ?? "*";
  const anyOrigin = allowed === "*" || (Array.isArray(allowed) && allowed.includes("*"));
  const isByOrigin = !anyOrigin || config.credentials === true;
  const origins = new Set(typeof allowed === "string" ? [allowed] : allowed);

  // Scripts read only the server's own headers.
  const shown = Object.keys(always).filter((name) => name.startsWith("x-"));
  const exposed = [EXPOSED_HEADERS, ...(isCluster ? [CLUSTER_HEADERS.exposed] : []), ...shown].join(", ");
  const allowedHeaders = isCluster ? `${ALLOWED_HEADERS}, ${CLUSTER_HEADERS.allowed}` : ALLOWED_HEADERS;
  const isMarked = Object.keys(always).length > 0;

  /** Adds the headers that a browser of this origin needs; requests without `Origin` get at most `Vary`. */
  const decorate = (headers: Record<string, string>, request: Request): void => {
    if (isMarked) Object.assign(headers, always);
    const origin = request.headers.get("origin");
    // Set also without `Origin`: a cached answer to such a request must not be reused for one with an origin.
    if (isByOrigin) headers["vary"] = "Origin";
    if (origin === null) return;
    if (!anyOrigin && !origins.has(origin)) return;
    // CORS forbids a wildcard with credentials, so the origin itself is named.
    headers["access-control-allow-origin"] = anyOrigin && config.credentials !== true ? "*" : origin;
    if (config.credentials === true) headers["access-control-allow-credentials"] = "true";
    headers["access-control-expose-headers"] = exposed;
  };

  return {
    decorate,
    /** Whether `decorate` adds anything. */
    isConcerned: ({ headers }: Request): boolean => isMarked || isByOrigin || headers.has("origin"),
    /** Returns the headers of the answer to a preflight. */
    preflight(request: Request, allow: string): Record<string, string> {
      const headers: Record<string, string> = { allow };
      decorate(headers, request);
      if (headers["access-control-allow-origin"] === undefined) return headers;
      headers["access-control-allow-methods"] = allow;
      headers["access-control-allow-headers"] = allowedHeaders;
      headers["access-control-max-age"] = String(config.maxAge ?? MAX_AGE_SECONDS);
      return headers;
    },
  };
}
