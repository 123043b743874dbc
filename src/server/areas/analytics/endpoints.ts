import { clientNetwork } from "../../../kernel/network/addresses.ts";
import { requireServiceKey } from "../../access/service-key-right.ts";
import { type Endpoint, endpoint } from "../../http/endpoint.ts";
import type { RateLimiter } from "../../http/rate-limit.ts";
import { JsonText } from "../../http/reply.ts";
import { TRACK_BODY_MAX_BYTES } from "./limits.ts";
import { EventReport, RequestReport, SlowRequestPage, Tracked } from "./model.ts";
import { EVENT_PARAMETERS, REQUEST_PARAMETERS, SLOW_PARAMETERS } from "./query-parameters.ts";
import type { AnalyticsService } from "./service.ts";
import { TrackBody } from "./track.ts";

const tag = "Analytics";
const READ = ["analytics", "*", "*", "read"] as const;
const WRITE = ["analytics", "*", "*", "write"] as const;

export function analyticsEndpoints(service: AnalyticsService, trackLimit: RateLimiter): readonly Endpoint[] {
  const track = endpoint(
    "POST /api/analytics/track",
    {
      tag,
      summary: "Track events",
      description:
        "Events are on disk within a second. Either all events of a request are stored or none. Rate-limited by address, for service keys too.",
      caller: "rules",
      place: "core",
      limit: (network) => trackLimit.hit(network),
      bodyMaxBytes: TRACK_BODY_MAX_BYTES,
      body: TrackBody,
      answers: { 200: Tracked },
      errors: [503],
    },
    async ({ principal, address, body }) => {
      if (principal.kind === "serviceKey") {
        // Every other caller has been counted already; other limits do not apply to service keys. [AN4]
        trackLimit.hit(clientNetwork(address()));
        requireServiceKey(principal, WRITE);
      }
      return { ok: true, count: await service.track(await body(), principal) };
    },
  );
  const query = endpoint(
    "GET /api/analytics/query",
    {
      tag,
      summary: "Report requests, errors and latency",
      description: "From the request log. Errors are 5xx answers; users are signed-in users.",
      caller: "serviceKey",
      place: "core",
      query: REQUEST_PARAMETERS,
      answers: { 200: RequestReport },
      errors: [400, 408, 503],
    },
    async (context) => {
      requireServiceKey(context.principal, READ);
      return new JsonText(await service.requests(context.query(), context));
    },
  );
  const events = endpoint(
    "GET /api/analytics/events",
    {
      tag,
      summary: "List, count and rank events",
      caller: "serviceKey",
      place: "core",
      query: EVENT_PARAMETERS,
      answers: { 200: EventReport },
      errors: [400, 408, 503],
    },
    async (context) => {
      requireServiceKey(context.principal, READ);
      return new JsonText(await service.events(context.query(), context));
    },
  );
  const slow = endpoint(
    "GET /api/admin/slow-requests",
    {
      tag,
      summary: "List slow requests",
      description:
        "Requests of the last 7 days that took `analytics.slowMs` (500) or longer, with what they waited for, newest first.",
      caller: "serviceKey",
      place: "core",
      query: SLOW_PARAMETERS,
      answers: { 200: SlowRequestPage },
      errors: [400, 408, 503],
    },
    async (context) => {
      requireServiceKey(context.principal, READ);
      return service.slowRequests(context.query(), context);
    },
  );
  return [track, query, events, slow];
}
