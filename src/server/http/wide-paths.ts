import { badField } from "../../kernel/errors.ts";
import type { Endpoint, Method } from "./endpoint.ts";

// Paths with a parameter that may hold slashes, such as `/api/storage/:bucket/:key+/metadata`. The router sees one
// wildcard, `/api/storage/:bucket/*`; which endpoint is meant is decided here.

/** Matches `:name+` in a path, and what follows it. */
const WIDE = /^(?<base>[^+]*\/):(?<name>\w+)\+(?<ending>\/.*)?$/;

type ByMethod = ReadonlyMap<string, Endpoint>;

/** The endpoints of a group whose wide paths have the same ending. */
interface WidePath {
  /** The name of the wide parameter. */
  name: string;
  /** The fixed end of the path, with its slash; empty where the parameter is the last of the path. */
  ending: string;
  endpoints: Map<Method, Endpoint>;
}

/** A path without a wide parameter, under the same base as wide ones: `/api/storage/:bucket/upload`. */
interface FixedPath {
  /** Matches what follows the base. */
  pattern: RegExp;
  endpoints: Map<Method, Endpoint>;
}

/** Endpoints whose paths are equal up to the wide parameter. */
export interface WideGroup {
  /** The router's pattern: `/api/storage/:bucket/*`. */
  pattern: string;
  /** The wide paths, longer endings first, as they are more specific. */
  wide: WidePath[];
  fixed: readonly FixedPath[];
}

/** The endpoints of one path, with the values of its last parameters. */
interface PathEndpoints {
  endpoints: ByMethod;
  params: Readonly<Record<string, string>>;
}

export const isWide = ({ route }: Endpoint): boolean => WIDE.test(pathOf(route));

export const methodOf = (route: string): Method => route.slice(0, route.indexOf(" ")) as Method;
export const pathOf = (route: string): string => route.slice(route.indexOf(" ") + 1);

export function groupWide(endpoints: readonly Endpoint[]): WideGroup[] {
  const groups = new Map<string, WideGroup>();
  for (const endpoint of endpoints) {
    const { base, name, ending = "" } = WIDE.exec(pathOf(endpoint.route))?.groups ?? {};
    if (base === undefined || name === undefined) continue;
    const pattern = `${base}*`;
    const group = groups.get(pattern) ?? { pattern, wide: [], fixed: fixedUnder(base, endpoints) };
    groups.set(pattern, group);
    const alike = group.wide.find((path) => path.ending === ending);
    if (alike === undefined)
      group.wide.push({ name, ending, endpoints: new Map([[methodOf(endpoint.route), endpoint]]) });
    else alike.endpoints.set(methodOf(endpoint.route), endpoint);
  }
  for (const { wide } of groups.values()) wide.sort((a, b) => b.ending.length - a.ending.length);
  return [...groups.values()];
}

function fixedUnder(base: string, endpoints: readonly Endpoint[]): FixedPath[] {
  const paths = new Map<string, FixedPath>();
  for (const endpoint of endpoints) {
    const path = `${pathOf(endpoint.route)}/`;
    if (isWide(endpoint) || !path.startsWith(base)) continue;
    const rest = path.slice(base.length, -1);
    const known = paths.get(rest) ?? { pattern: patternOf(rest), endpoints: new Map() };
    known.endpoints.set(methodOf(endpoint.route), endpoint);
    paths.set(rest, known);
  }
  return [...paths.values()];
}

/** Compiles the pattern of a path. Paths of endpoints contain letters, digits, hyphens and slashes beside their parameters. */
const patternOf = (path: string): RegExp => new RegExp(`^${path.replace(/:(\w+)/g, "(?<$1>[^/]+)")}$`);

/**
 * Returns the endpoints of the path that has `rest` after the group's base; null where there is none. The longest matching ending
 * decides: where `…/metadata` is an endpoint of one method, it is none of the others. A fixed path with a method of the wide one,
 * such as `GET uploads/:id/parts`, is a path of its own; one that adds a method, such as `POST upload`, shares it with a value of
 * that name.
 */
export function pathAt({ wide, fixed }: WideGroup, rest: string): PathEndpoints | null {
  const path = wide.find(({ ending }) => rest.length > ending.length && rest.endsWith(ending));
  const other = fixed.find(({ pattern }) => pattern.test(rest));
  const params = path === undefined ? {} : { [path.name]: rest.slice(0, rest.length - path.ending.length) };
  if (other === undefined) return path === undefined ? null : { endpoints: path.endpoints, params };
  const isOwnPath = path === undefined || [...other.endpoints.keys()].some((method) => path.endpoints.has(method));
  if (isOwnPath) return { endpoints: other.endpoints, params: { ...other.pattern.exec(rest)?.groups } };
  return { endpoints: new Map([...path.endpoints, ...other.endpoints]), params };
}

/**
 * Returns what follows the group's base in the path of a URL, decoded once. The router's own decoding would turn malformed escapes
 * into other characters. Errors: 400 naming the wide parameter.
 */
export function restOfPath(url: string, { pattern, wide }: WideGroup): string {
  let start = url.indexOf("://") + 2;
  // Skips as many slashes as the pattern has.
  for (let at = pattern.indexOf("/"); at >= 0; at = pattern.indexOf("/", at + 1)) start = url.indexOf("/", start + 1);
  const query = url.indexOf("?", start);
  const path = query < 0 ? url.slice(start + 1) : url.slice(start + 1, query);
  const fragment = path.indexOf("#");
  const rest = fragment < 0 ? path : path.slice(0, fragment);
  try {
    return rest.includes("%") ? decodeURIComponent(rest) : rest;
  } catch {
    throw badField(wide[0]?.name ?? "", "invalid_value", "The path is not valid percent-encoding");
  }
}
