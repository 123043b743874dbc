import { notFound } from "../../../kernel/errors.ts";
import type { Cors } from "../cors.ts";
import { METHODS, methodRefused, methodsOf } from "../mount.ts";
import { NOSNIFF } from "../security-headers.ts";
import { pathAt, restOfPath, type WideGroup } from "../wide-paths.ts";

export type Unrouted = ReturnType<typeof createUnrouted>;

/**
 * Creates the answers to requests that the router does not match, from its routes. `wide`: groups that the router has for every
 * method, where the rest of the path decides.
 */
export function createUnrouted(
  { nextRequestId }: { nextRequestId(): string },
  cors: Cors,
  routes: () => readonly { method: string; path: string }[],
  { site = null, wide = [] }: { site?: { has(path: string): boolean } | null; wide?: readonly WideGroup[] } = {},
) {
  let patterns: Pattern[] | null = null;
  const declaredAt = (path: string): string[] => {
    // All routes are mounted before the first request.
    patterns ??= routes().map((route) => ({ method: route.method, segments: segmentsOf(route.path) }));
    const given = segmentsOf(path);
    const group = wide.find(({ pattern }) => isAt(segmentsOf(pattern), given));
    if (group === undefined)
      return patterns.filter(({ segments }) => isAt(segments, given)).map(({ method }) => method);
    return [...(pathAt(group, restOfPath(`http://localhost${path}`, group))?.endpoints.keys() ?? [])];
  };
  /** Returns the methods of the routes at a path, in the order of `Allow`; empty: there is no route. */
  const methodsAt = (path: string): string[] => {
    const declared = declaredAt(path);
    if (declared.length === 0 && site?.has(path) === true) return methodsOf(["GET"]);
    return methodsOf(METHODS.filter((method) => declared.includes(method)));
  };
  return {
    methodsAt,
    /** Answers a preflight. Errors: 404; 405 with `Allow`. */
    answer(request: Request, path: string): Response {
      const allow = methodsAt(path);
      if (request.method === "OPTIONS" && allow.length > 0) {
        const headers = cors.preflight(request, allow.join(", "));
        const common = { ...NOSNIFF, "x-request-id": nextRequestId() };
        return new Response(null, { status: 204, headers: { ...headers, ...common } });
      }
      if (allow.length === 0) throw notFound(`There is nothing at ${path}`);
      throw methodRefused(request, allow);
    },
  };
}

interface Pattern {
  method: string;
  segments: readonly string[];
}

/** Whether the router matches the pattern with the path. */
function isAt(wanted: readonly string[], given: readonly string[]): boolean {
  if (wanted.at(-1) === "*" ? given.length < wanted.length : given.length !== wanted.length) return false;
  return wanted.every((segment, index) => segment === "*" || segment.startsWith(":") || segment === given[index]);
}

/** Splits a path; a trailing slash makes no difference. */
const segmentsOf = (path: string): string[] => path.replace(/\/$/, "").split("/");
