/** The areas by which the request log and the metrics count; `other` where no route matched. */
export const ROUTE_AREAS = [
  "db",
  "storage",
  "auth",
  "kv",
  "d1",
  "vectorize",
  "rooms",
  "realtime",
  "push",
  "analytics",
  "functions",
  "jobs",
  "system",
  "other",
] as const;

export type RouteArea = (typeof ROUTE_AREAS)[number];

/** Areas whose paths do not begin with their name. */
const BY_FIRST_WORD: Readonly<Record<string, RouteArea>> = { room: "rooms" };
/** The areas by the word after `/api/admin`; others belong to `auth`. */
const BY_ADMIN_WORD: Readonly<Record<string, RouteArea>> = {
  jobs: "jobs",
  "slow-requests": "analytics",
  audit: "system",
  logs: "system",
  backups: "system",
};

/** Returns the area of a route's pattern; `route` null: no route matched. */
export function areaOf(route: string | null): RouteArea {
  if (route === null) return "other";
  const [, first, word = "", next] = route.split("/");
  if (first !== "api") return "system";
  if (word === "admin") return BY_ADMIN_WORD[next ?? ""] ?? "auth";
  return BY_FIRST_WORD[word] ?? ROUTE_AREAS.find((area) => area === word) ?? "system";
}
