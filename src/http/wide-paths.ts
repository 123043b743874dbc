import { badField } from "../kernel/errors.ts";
import type { Endpoint, Method } from "./endpoint.ts";

// Paths with a parameter that may hold slashes, such as `/api/storage/:bucket/:key+/metadata`. The router sees one
// wildcard, `/api/storage/:bucket/*`; which endpoint is meant is decided here.

/** `:name+` in a path, and what follows it. */
const WIDE = /^(?<base>[^+]*\/):(?<name>\w+)\+(?<ending>\/.*)?$/;

interface WideEndpoint {
  endpoint: Endpoint;
  method: Method;
  name: string;
  /** The fixed end of the path, with its slash; empty where the parameter is the last of the path. */
  ending: string;
}

/** An endpoint of a path without a wide parameter, under the same base as wide ones: `/api/storage/:bucket/upload`. */
interface FixedEndpoint {
  endpoint: Endpoint;
  method: Method;
  /** What follows the base; empty for the base itself. */
  segments: readonly string[];
}

/** Endpoints whose paths are alike up to the wide parameter. */
export interface WideGroup {
  /** What the router sees: `/api/storage/:bucket/*`. */
  pattern: string;
  members: WideEndpoint[];
  fixed: FixedEndpoint[];
}

/** An endpoint at a path, with what its last parameters are there. */
interface Candidate {
  endpoint: Endpoint;
  method: Method;
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
    const group = groups.get(pattern) ?? { pattern, members: [], fixed: fixedUnder(base, endpoints) };
    group.members.push({ endpoint, method: methodOf(endpoint.route), name, ending });
    groups.set(pattern, group);
  }
  // A longer ending is the more specific one.
  for (const { members } of groups.values()) members.sort((a, b) => b.ending.length - a.ending.length);
  return [...groups.values()];
}

function fixedUnder(base: string, endpoints: readonly Endpoint[]): FixedEndpoint[] {
  return endpoints.flatMap((endpoint) => {
    const path = `${pathOf(endpoint.route)}/`;
    if (isWide(endpoint) || !path.startsWith(base)) return [];
    return [{ endpoint, method: methodOf(endpoint.route), segments: segmentsOf(path.slice(base.length, -1)) }];
  });
}

const segmentsOf = (text: string): string[] => (text === "" ? [] : text.split("/"));

/**
 * The endpoints of the path that has `rest` after the group's base. The longest ending that fits decides: where `…/metadata`
 * is an endpoint of one method, it is none of the others. A fixed path with a method of the wide ones, such as
 * `GET uploads/:id/parts`, is a path of its own; one that adds a method, such as `POST upload`, shares it with a value of
 * that name.
 */
export function endpointsAt({ members, fixed }: WideGroup, rest: string): readonly Candidate[] {
  const first = members.find(({ ending }) => rest.length > ending.length && rest.endsWith(ending));
  const wide: Candidate[] = [];
  for (const { endpoint, method, name, ending } of members) {
    if (ending !== first?.ending) continue;
    wide.push({ endpoint, method, params: { [name]: rest.slice(0, rest.length - ending.length) } });
  }
  const segments = segmentsOf(rest);
  const others: Candidate[] = [];
  for (const { endpoint, method, segments: pattern } of fixed) {
    const params = paramsOf(pattern, segments);
    if (params !== null) others.push({ endpoint, method, params });
  }
  const isOwnPath = others.some(({ method }) => wide.some((one) => one.method === method));
  return isOwnPath ? others : [...wide, ...others];
}

/** null: the segments are not of this pattern. */
function paramsOf(pattern: readonly string[], segments: readonly string[]): Record<string, string> | null {
  if (pattern.length !== segments.length) return null;
  const params: Record<string, string> = {};
  for (const [index, name] of pattern.entries()) {
    const segment = segments[index] ?? "";
    if (name.startsWith(":")) params[name.slice(1)] = segment;
    else if (name !== segment) return null;
  }
  return params;
}

/**
 * What follows the group's base in the path of a URL, decoded once. The router's own decoding would turn malformed escapes
 * into other characters. Errors: 400 naming the wide parameter.
 */
export function restOfPath(url: string, { pattern, members }: WideGroup): string {
  const query = url.search(/[?#]/);
  const path = query < 0 ? url : url.slice(0, query);
  const slashes = pattern.split("/").length - 1;
  let start = path.indexOf("://") + 2;
  for (let count = 0; count < slashes; count++) start = path.indexOf("/", start + 1);
  try {
    return decodeURIComponent(path.slice(start + 1));
  } catch {
    throw badField(members[0]?.name ?? "", "invalid_value", "The path is not valid percent-encoding");
  }
}
