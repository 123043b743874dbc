/** What a request is counted as: the area that its path belongs to; `other` where no route matched. */
export const ROUTE_AREAS = [
  ...(["db", "storage", "auth", "kv", "d1", "vectorize", "rooms", "realtime"] as const),
  ...(["push", "analytics", "system", "other"] as const),
] as const;

export type RouteArea = (typeof ROUTE_AREAS)[number];

/** Areas whose paths begin with another word than their name. */
const BY_FIRST_WORD: Readonly<Record<string, RouteArea>> = { room: "rooms", admin: "auth" };

/** The area of a route's pattern; null is that of a request that no route matched. */
export function areaOf(route: string | null): RouteArea {
  if (route === null) return "other";
  const [, first, word = ""] = route.split("/");
  if (first !== "api") return "system";
  return BY_FIRST_WORD[word] ?? ROUTE_AREAS.find((area) => area === word) ?? "system";
}
