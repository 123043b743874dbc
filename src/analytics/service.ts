import type { Principal } from "../access/principal.ts";
import type { Query } from "../http/query.ts";
import type { Clock } from "../kernel/clock.ts";
import { AppError, unreachable } from "../kernel/errors.ts";
import type { JsonObject } from "../kernel/json.ts";
import { chain, type MaybePromise } from "../kernel/maybe-promise.ts";
import { TOP_ITEMS_MAX } from "./limits.ts";
import type { EventQueries } from "./queries/event-queries.ts";
import type { RequestReport } from "./queries/request-queries.ts";
import { averageMs, sharesByCategory, sharesByEndpoint } from "./queries/shares.ts";
import { parseEventQuery, parseRequestQuery } from "./query-parameters.ts";
import { parseTrackBody } from "./track-body.ts";
import type { EventQuery, RequestQuery, TrackedEvent } from "./types.ts";

/** Reports are JSON text, because SQLite builds long series as JSON. */
export interface AnalyticsService {
  /** Takes the events, to be on disk within a second; gives their number. Errors: 400 naming event and member, 503. */
  track(body: JsonObject, principal: Principal): MaybePromise<number>;
  /** A report on the request log, including every request answered so far. Errors: 400, 408 after 30 s, 503. */
  requests(query: Query, signal: AbortSignal): Promise<string>;
  /** A report on events, including every event tracked so far. Errors: 400, 408 after 30 s, 503. */
  events(query: Query, signal: AbortSignal): Promise<string>;
}

export function createAnalyticsService(deps: {
  accept: (events: readonly TrackedEvent[]) => MaybePromise<void>;
  /** Resolves when everything that is waiting has been written. */
  flush: () => Promise<void>;
  readReport: (query: RequestQuery, signal: AbortSignal) => Promise<RequestReport>;
  eventQueries: EventQueries;
  clock: Clock;
}): AnalyticsService {
  const { accept, flush, readReport, eventQueries, clock } = deps;
  return {
    track(body, principal) {
      const events = parseTrackBody(body, principal, clock.now());
      return chain(accept(events), () => events.length);
    },
    async requests(text, signal) {
      const query = parseRequestQuery(text, clock.now());
      await flush();
      return reportJson(query.metric, await untilGone(readReport(query, signal), signal));
    },
    async events(text, signal) {
      const query = parseEventQuery(text, clock.now());
      await flush();
      return untilGone(eventsJson(eventQueries, query, signal), signal);
    },
  };
}

function reportJson(metric: RequestQuery["metric"], report: RequestReport): string {
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
    default:
      return unreachable(metric);
  }
}

function summaryOf({ totals }: RequestReport) {
  const { requests, errors, uniqueUsers } = totals;
  return { totalRequests: requests, totalErrors: errors, avgLatency: averageMs(totals), uniqueUsers };
}

async function eventsJson(queries: EventQueries, query: EventQuery, signal: AbortSignal): Promise<string> {
  switch (query.metric) {
    case "list":
      return JSON.stringify(await queries.list(query, signal));
    case "count":
      return JSON.stringify(await queries.count(query, signal));
    case "timeSeries":
      return `{"timeSeries":${await queries.timeSeriesJson(query, signal)}}`;
    case "topEvents":
      return JSON.stringify({ topEvents: await queries.top(query, signal) });
    default:
      return unreachable(query.metric);
  }
}

/** A client that disconnects cancels its query. The status is never read; it only keeps the log from reporting a failure. */
async function untilGone<T>(answer: Promise<T>, signal: AbortSignal): Promise<T> {
  try {
    return await answer;
  } catch (cause) {
    if (signal.aborted) throw new AppError(408, "The client went away");
    throw cause;
  }
}
