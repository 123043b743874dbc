import type { Clock } from "../../../kernel/clock.ts";
import { unreachable } from "../../../kernel/errors.ts";
import type { MaybePromise } from "../../../kernel/maybe-promise.ts";
import { decodeCursor, encodeCursor } from "../../../kernel/records/page-cursor.ts";
import { parseSpan } from "../../../kernel/time/iso-datetime.ts";
import { Scheduler } from "../../../kernel/time/scheduler.ts";
import type { Principal } from "../../access/principal.ts";
import type { ReadCaller } from "../../db/index.ts";
import type { EventQueries } from "./event-queries.ts";
import { percentilesOf } from "./latency-buckets.ts";
import { LIST_LIMIT_DEFAULT, TARGETS_MAX, TOP_ITEMS_MAX } from "./limits.ts";
import type { EventQuery, RequestQuery, SlowRequestPage, TrackedEvent } from "./model.ts";
import {
  type EventParameters,
  parseEventQuery,
  parseRequestQuery,
  type RequestParameters,
  type SlowParameters,
} from "./query-parameters.ts";
import type { RequestFigures } from "./request-queries.ts";
import { averageMs, latenciesOf, sharesByCategory, sharesByEndpoint, targetsOf } from "./shares.ts";
import type { SlowRequests } from "./slow-requests.ts";
import { prepareEvents, type TrackBody } from "./track.ts";

/** Operations of analytics. Reports are JSON text, because SQLite builds long series as JSON. */
export type AnalyticsService = ReturnType<typeof createAnalyticsService>;

export function createAnalyticsService(deps: {
  accept: (events: readonly TrackedEvent[]) => MaybePromise<void>;
  /** Writes what is waiting. Resolves when it has been written. */
  flush: () => Promise<void>;
  readReport: (query: RequestQuery, caller: ReadCaller) => Promise<RequestFigures>;
  eventQueries: EventQueries;
  slow: Pick<SlowRequests, "page">;
  clock: Clock;
}) {
  const { accept, flush, readReport, eventQueries, slow, clock } = deps;
  const turns = new Scheduler();
  return {
    /** Accepts events, which are on disk within a second. Resolves to their number. Errors: 400 naming event and member, 503. */
    async track(body: TrackBody, principal: Principal): Promise<number> {
      const events = await turns.run(prepareEvents(body, principal, clock.now()));
      await accept(events);
      return events.length;
    },
    /** Resolves to a report on the request log, including every request answered so far. Errors: 400, 408 after 30 s, 503. */
    async requests(parameters: RequestParameters, caller: ReadCaller): Promise<string> {
      const query = parseRequestQuery(parameters, clock.now());
      await flush();
      return reportJson(query.metric, await readReport(query, caller));
    },
    /** Resolves to a report on events, including every event tracked so far. Errors: 400, 408 after 30 s, 503. */
    async events(parameters: EventParameters, caller: ReadCaller): Promise<string> {
      const query = parseEventQuery(parameters, clock.now());
      await flush();
      return eventsJson(eventQueries, query, caller);
    },
    /** Lists slow requests of the last 7 days, newest first, including every request answered so far. Errors: 400, 408, 503. */
    async slowRequests(
      { limit = LIST_LIMIT_DEFAULT, cursor, ...span }: SlowParameters,
      caller: ReadCaller,
    ): Promise<SlowRequestPage> {
      const before = cursor === undefined ? null : decodeCursor(cursor, 1)[0];
      const range = parseSpan(span);
      await flush();
      const now = clock.now();
      const { requests, next } = await slow.page({ limit, before, now, ...range }, caller);
      return { requests, cursor: next === null ? null : encodeCursor(next) };
    },
  };
}

function reportJson(metric: RequestQuery["metric"], report: RequestFigures): string {
  const series = () => `"timeSeries":${report.timeSeriesJson}`;
  const breakdown = () => `"breakdown":${JSON.stringify(sharesByCategory(report.endpoints))}`;
  const topItems = () => `"topItems":${JSON.stringify(sharesByEndpoint(report.endpoints, TOP_ITEMS_MAX))}`;
  switch (metric) {
    case "overview":
      return `{${series()},"summary":${JSON.stringify(summaryOf(report))},${breakdown()},${topItems()}}`;
    case "timeSeries":
      return `{${series()}}`;
    case "breakdown":
      return `{${breakdown()}}`;
    case "topEndpoints":
      return `{${topItems()}}`;
    case "targets":
      return JSON.stringify({ targets: targetsOf(report.endpoints, TARGETS_MAX) });
    default:
      return unreachable(metric);
  }
}

function summaryOf({ totals, endpoints }: RequestFigures) {
  const { requests, errors, errors4xx, uniqueUsers } = totals;
  const percentiles = percentilesOf(latenciesOf(endpoints));
  const counts = { totalRequests: requests, totalErrors: errors, errors4xx };
  return { ...counts, avgLatency: averageMs(totals), ...percentiles, uniqueUsers };
}

async function eventsJson(queries: EventQueries, query: EventQuery, caller: ReadCaller): Promise<string> {
  switch (query.metric) {
    case "list":
      return JSON.stringify(await queries.list(query, caller));
    case "count":
      return JSON.stringify(await queries.count(query, caller));
    case "timeSeries":
      return `{"timeSeries":${await queries.timeSeriesJson(query, caller)}}`;
    case "topEvents":
      return JSON.stringify({ topEvents: await queries.top(query, caller) });
    case "funnel":
      return JSON.stringify({ funnel: await queries.funnel(query, caller) });
    default:
      return unreachable(query.metric);
  }
}
