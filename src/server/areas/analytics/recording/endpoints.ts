import type { Answered } from "../../../http/exchange/request-context.ts";
import { areaOf, type RouteArea } from "../../../http/route-area.ts";
import type { RequestRow } from "../types.ts";
import type { Measured } from "./histograms.ts";
import type { TargetOf } from "./targets.ts";

/** Requests of one method, route and target: their rows of the current second, by user, and their histogram. */
export interface Endpoint extends Measured {
  rows: Map<string, RequestRow[]>;
}

interface Route {
  label: string;
  category: RouteArea;
  targetOf: TargetOf | null;
  byTarget: Map<string, Endpoint>;
}

/** The label of all paths that match no route; clients can invent any number of them. */
const NO_ROUTE = "(none)";

/** Finds the endpoint of a request. Paths are patterns and targets are declared, so the number of endpoints is bounded. */
export function createEndpoints(targets: (route: string | null) => TargetOf | null): (answered: Answered) => Endpoint {
  const routes = new Map<string | null, Map<string, Route>>();
  const addRoute = (route: string | null, method: string): Route => {
    const byMethod = routes.get(route) ?? new Map<string, Route>();
    routes.set(route, byMethod);
    const label = route?.replace(/(?<=.)\/$/, "") ?? NO_ROUTE;
    const added = { label, category: areaOf(route), targetOf: targets(route), byTarget: new Map() };
    byMethod.set(method, added);
    return added;
  };
  return (answered) => {
    const { route: pattern, request } = answered;
    const { method } = request;
    const route = routes.get(pattern)?.get(method) ?? addRoute(pattern, method);
    const target = route.targetOf === null ? "" : route.targetOf(answered);
    const known = route.byTarget.get(target);
    if (known !== undefined) return known;
    const { label, category } = route;
    const counters = { rows: new Map<string, RequestRow[]>(), latencies: null, hasLatencies: false };
    const endpoint: Endpoint = { method, route: label, category, target, ...counters };
    route.byTarget.set(target, endpoint);
    return endpoint;
  };
}
