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

/** Endpoints whose paths are alike up to the wide parameter. */
export interface WideGroup {
  /** What the router sees: `/api/storage/:bucket/*`. */
  pattern: string;
  members: WideEndpoint[];
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
    const group = groups.get(pattern) ?? { pattern, members: [] };
    group.members.push({ endpoint, method: methodOf(endpoint.route), name, ending });
    groups.set(pattern, group);
  }
  // A longer ending is the more specific one.
  for (const { members } of groups.values()) members.sort((a, b) => b.ending.length - a.ending.length);
  return [...groups.values()];
}

/**
 * The members of a group that serve what follows its pattern's base, with the parameter's value. An ending is told from
 * the end of a value by specificity alone: where `…/metadata` is an endpoint of one method, it is none of the others.
 */
export function membersAt({ members }: WideGroup, rest: string): { member: WideEndpoint; value: string }[] {
  const first = members.find(({ ending }) => rest.length > ending.length && rest.endsWith(ending));
  if (first === undefined) return [];
  const value = rest.slice(0, rest.length - first.ending.length);
  return members.filter(({ ending }) => ending === first.ending).map((member) => ({ member, value }));
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
