import type { MaybePromise } from "../../../kernel/maybe-promise.ts";
import { ACT_AS_HEADER } from "../../access/acting.ts";
import { ADMIN_HEADER, SERVICE_KEY_HEADER } from "../../access/principals.ts";
import type { PlatformConfig } from "../../config/types.ts";
import type { Endpoint } from "../../http/endpoint.ts";
import type { Http } from "../../http/http.ts";
import { groupWide, methodOf, pathOf, restOfPath } from "../../http/wide-paths.ts";
import type { WorkerHttp } from "./worker-http.ts";

/** The path of a read of a table in a namespace or an instance, of characters that no router decodes. */
const READ_PATH = /^\/api\/db\/([\w-]+)(?:\/([\w-]+))?\/tables\/([\w-]+)(?:\/([\w.~-]+))?$/;
/** The path of a download. The key is decoded as by the main process; a path of another endpoint is no key. */
const FILE_PATH = /^\/api\/storage\/([\w-]+)\/.*(?<!\/metadata)$/;
/** The path of anything else, of characters that no router decodes. */
const PLAIN_PATH = /^\/([\w.~-]*)(?:\/[\w.~-]+)*\/?$/;
/** Headers with which only the main process answers. */
const NOT_HERE = [ADMIN_HEADER, ACT_AS_HEADER, "trailer", "upgrade"] as const;

/** Answer to a request that this process may give; null: there is none. */
type Handle = (context: {
  request: Request;
  params: Record<string, string>;
  route: string;
}) => MaybePromise<Response | null>;

/** An endpoint for a request, and what its path says. */
export interface Found {
  handle: Handle;
  params: Record<string, string>;
  pattern: string;
  /** Whether the answer depends on files that are written: it has to be of one moment. */
  isOfMoment: boolean;
}

interface Route {
  handle: Handle;
  pattern: string;
  isOfMoment: boolean;
}

/** Creates the function that finds the endpoint of a request; null: it is none that a worker answers. */
export function createFinding(
  { databases = {} }: PlatformConfig,
  served: WorkerHttp,
): (request: Request) => Found | null {
  const { http, site } = served;
  const readsOf = (endpoints: ReadonlyMap<string, Endpoint>) =>
    new Map([...endpoints].map(([rest, one]) => [rest, routeOf(http, one, true)]));
  const reads = readsOf(served.tables.static);
  const readsOfInstances = readsOf(served.tables.dynamic);
  const findFile = createFileFinding(http, served.files);
  const findPlain = createPlainFinding(http, served);
  const hasInstances = (namespace: string): boolean | null =>
    Object.hasOwn(databases, namespace) ? databases[namespace]?.instance === true : null;

  return (request) => {
    const { headers, method, url } = request;
    if (method !== "GET" && method !== "HEAD") return null;
    const host = headers.get("host");
    if (host === null || host.includes(",")) return null;
    for (const name of NOT_HERE) if (headers.has(name)) return null;
    const pathAt = url.indexOf("/", url.indexOf("//") + 2);
    const queryAt = url.indexOf("?", pathAt);
    const path = url.slice(pathAt, queryAt < 0 ? undefined : queryAt);
    const [, namespace, instance, table, rest = ""] = READ_PATH.exec(path) ?? [];
    if (namespace !== undefined && table !== undefined) {
      if (method === "HEAD" || hasInstances(namespace) !== (instance !== undefined)) return null;
      const routes = instance === undefined ? reads : readsOfInstances;
      const params = instance === undefined ? { namespace, table } : { namespace, instance, table };
      const route = routes.get(rest);
      if (route !== undefined) return { ...route, params };
      const byId = routes.get(":id");
      return byId === undefined ? null : { ...byId, params: { ...params, id: rest } };
    }
    const bucket = FILE_PATH.exec(path)?.[1];
    if (bucket !== undefined) return findFile(request, bucket);
    // A valid key is not counted, and endpoints for anybody do not look at it.
    if (headers.has(SERVICE_KEY_HEADER)) return null;
    const first = PLAIN_PATH.exec(path)?.[1];
    if (first === undefined) return null;
    if (site !== null && !site.others.has(first)) return { ...SITE, handle: site.handle, params: {} };
    return method === "GET" ? findPlain(path) : null;
  };
}

const SITE = { pattern: "/*", isOfMoment: false } as const;

const routeOf = (http: Http, endpoint: Endpoint, isOfMoment: boolean): Route => ({
  handle: http.endpoint(endpoint),
  // As the main process's router names it.
  pattern: groupWide([endpoint])[0]?.pattern ?? pathOf(endpoint.route),
  isOfMoment,
});

/** Creates the function that finds the download of a file. */
function createFileFinding(http: Http, endpoints: readonly Endpoint[]) {
  const [group] = groupWide(endpoints);
  const routes = new Map<string, Route>(endpoints.map((one) => [methodOf(one.route), routeOf(http, one, true)]));
  return (request: Request, bucket: string): Found | null => {
    const route = routes.get(request.method);
    if (group === undefined || route === undefined) return null;
    try {
      return { ...route, params: { bucket, key: restOfPath(request.url, group) } };
    } catch {
      // The main process refuses the path.
      return null;
    }
  };
}

/** Creates the function that finds endpoints by paths of plain characters. */
function createPlainFinding(http: Http, { described, packed }: WorkerHttp) {
  const fixed = new Map<string, Route>();
  const others: { route: Route; matches: RegExp }[] = [];
  const add = (endpoint: Endpoint, isOfMoment: boolean): void => {
    const route = routeOf(http, endpoint, isOfMoment);
    const path = pathOf(endpoint.route);
    if (!path.includes(":")) fixed.set(path, route);
    else others.push({ route, matches: new RegExp(`^${path.replace(/:(\w+)(\+?)/g, parameter)}$`) });
  };
  for (const endpoint of described) add(endpoint, true);
  for (const endpoint of packed) add(endpoint, false);
  return (path: string): Found | null => {
    const route = fixed.get(path);
    if (route !== undefined) return { ...route, params: {} };
    for (const { route: other, matches } of others) {
      const match = matches.exec(path);
      if (match !== null) return { ...other, params: { ...match.groups } };
    }
    return null;
  };
}

const parameter = (_: string, name: string, wide: string): string => `(?<${name}>${wide === "" ? "[^/]+" : ".+"})`;
