import { type AnyElysia, Elysia } from "elysia";
import { requireServiceKey } from "../access/service-key-right.ts";
import type { Http, RequestContext } from "../http/http.ts";
import type { RateLimiter } from "../http/rate-limit.ts";
import { JsonText } from "../http/reply.ts";
import { clientNetwork } from "../kernel/client-network.ts";
import { TRACK_BODY_MAX_BYTES } from "./limits.ts";
import { DESCRIPTIONS } from "./operations.ts";
import type { AnalyticsService } from "./service.ts";

/** Spec: Analytics endpoints. */
export function createAnalyticsRoutes(
  http: Http,
  deps: { service: AnalyticsService; trackLimit: RateLimiter },
): AnyElysia {
  const { service, trackLimit } = deps;
  const read =
    (answer: AnalyticsService["requests"]) =>
    async ({ principal, request, query }: RequestContext): Promise<JsonText> => {
      requireServiceKey(principal, ["analytics", "*", "*", "read"]);
      return new JsonText(await answer(query(), request.signal));
    };
  return new Elysia()
    .post(
      "/api/analytics/track",
      http.route(
        async ({ principal, address, jsonObject }) => {
          if (principal.kind === "serviceKey") {
            // The one limit that binds service keys too; everybody else was counted before. Decisions 13.
            trackLimit.hit(clientNetwork(address()));
            requireServiceKey(principal, ["analytics", "*", "*", "write"]);
          }
          return { ok: true, count: await service.track(await jsonObject(), principal) };
        },
        { limit: (network) => trackLimit.hit(network), bodyMaxBytes: TRACK_BODY_MAX_BYTES },
      ),
      DESCRIPTIONS.track,
    )
    .get("/api/analytics/query", http.route(read(service.requests)), DESCRIPTIONS.query)
    .get("/api/analytics/events", http.route(read(service.events)), DESCRIPTIONS.events);
}
