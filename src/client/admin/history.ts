import type { JsonValue } from "../../kernel/json/json.ts";
import type { Transport } from "../transport/types.ts";

/** Page of a list; `cursor` is null on the last one. */
export interface AdminPage<Item> {
  items: Item[];
  cursor: string | null;
}

export interface AuditEntry {
  at: string;
  actor: {
    kind: "serviceKey" | "admin" | "user" | "anonymous";
    /** Name of the key, or the user's id. */
    name: string | null;
    /** User whom the actor acted as: a user's id, or `anonymous`. */
    as?: string;
  };
  address: string | null;
  action: string;
  target: string;
  /** Previous value, without secrets; null if there was none. */
  before: JsonValue;
  after: JsonValue;
  requestId: string | null;
}

export interface AdminAudit {
  /** Returns audit entries, newest first. `action` and `target` are prefixes, such as `record` or `db/shared/notes`. */
  list(options?: {
    actor?: string;
    action?: string;
    target?: string;
    /** Start of the range: milliseconds since 1970, or ISO 8601. */
    after?: string | number;
    /** The id of the request that did it. */
    request?: string;
    limit?: number;
    cursor?: string | null;
  }): Promise<AdminPage<AuditEntry>>;
}

/** Latencies in milliseconds, within 1/16. */
export interface Percentiles {
  p50: number;
  p95: number;
  p99: number;
}

/** Time range of a report. `range` is `24h` by default; `start` and `end` are milliseconds since 1970 or ISO 8601. */
export interface ReportRange {
  range?: "1h" | "6h" | "24h" | "7d" | "30d" | "90d";
  start?: string | number;
  end?: string | number;
  /** Step of time series: `hour` by default. */
  groupBy?: "minute" | "hour" | "day";
}

/** Requests in one step of a time series. `errors` counts 5xx responses. */
export interface RequestPoint extends Percentiles {
  /** Start of the step, in milliseconds since 1970. */
  timestamp: number;
  requests: number;
  errors: number;
  errors4xx: number;
  avgLatency: number;
  uniqueUsers: number;
}

export interface RequestSummary extends Percentiles {
  totalRequests: number;
  totalErrors: number;
  errors4xx: number;
  avgLatency: number;
  uniqueUsers: number;
}

export interface RequestTarget extends Percentiles {
  method: string;
  route: string;
  /** Table, bucket or other resource of the config; null without one. */
  target: string | null;
  requests: number;
  errors4xx: number;
  errors5xx: number;
  avgLatency: number;
}

export interface SlowRequest {
  at: string;
  requestId: string;
  method: string;
  path: string;
  target: string | null;
  status: number;
  principal: { kind: "anonymous" | "user" | "serviceKey" | "server"; name: string | null };
  ms: number;
  /** Time per phase, in milliseconds. */
  phases: { rules: number; database: number; hooks: number; answer: number };
  /** Number of records read or changed. */
  rows: number;
}

export interface TrackedEvent {
  id: string;
  /** Time of the event, in milliseconds since 1970. */
  timestamp: number;
  userId: string | null;
  eventName: string;
  properties: Record<string, string | number | boolean>;
}

interface EventOptions extends ReportRange {
  event?: string;
  userId?: string;
}

export interface AdminAnalytics {
  /** Returns the totals of a range, and its time series in order. */
  requests(options?: ReportRange): Promise<{ summary: RequestSummary; timeSeries: RequestPoint[] }>;
  /** Returns requests by endpoint and resource, most requests first, at most 1,000. */
  targets(options?: ReportRange): Promise<RequestTarget[]>;
  /** Returns slow requests, newest first. */
  slowRequests(options?: {
    /** Start of the range, and its end, which is not included: milliseconds since 1970, or ISO 8601. */
    from?: string | number;
    to?: string | number;
    limit?: number;
    cursor?: string | null;
  }): Promise<AdminPage<SlowRequest>>;
  /** Returns events, newest first. */
  events(options?: EventOptions & { limit?: number; cursor?: string | null }): Promise<AdminPage<TrackedEvent>>;
  /** Returns event names, most frequent first. */
  topEvents(
    options?: EventOptions & { limit?: number },
  ): Promise<{ eventName: string; count: number; uniqueUsers: number }[]>;
  /**
   * Counts the users who did each of two to five events in the range, in this order. Days that are already summarised are not
   * included.
   */
  funnel(steps: readonly string[], options?: ReportRange): Promise<{ eventName: string; users: number }[]>;
  /** Returns the number of events in each step, in order. */
  eventSeries(options?: EventOptions): Promise<{ timestamp: number; count: number }[]>;
}

export const createAudit = ({ request }: Transport): AdminAudit => ({
  async list(query) {
    const answer = await request<{ entries: AuditEntry[]; cursor: string | null }>("GET", "/api/admin/audit", {
      query: { ...query },
    });
    return { items: answer.entries, cursor: answer.cursor };
  },
});

export function createAnalytics({ request }: Transport): AdminAnalytics {
  const requests = <T>(metric: string, query: object = {}) =>
    request<T>("GET", "/api/analytics/query", { query: { ...query, metric } });
  const events = <T>(metric: string, query: object = {}) =>
    request<T>("GET", "/api/analytics/events", { query: { ...query, metric } });
  return {
    async requests(options) {
      type Report = { summary: RequestSummary; timeSeries: RequestPoint[] };
      const { summary, timeSeries } = await requests<Report>("overview", options);
      return { summary, timeSeries };
    },
    targets: async (options) => (await requests<{ targets: RequestTarget[] }>("targets", options)).targets,
    async slowRequests(query) {
      type Page = { requests: SlowRequest[]; cursor: string | null };
      const answer = await request<Page>("GET", "/api/admin/slow-requests", { query: { ...query } });
      return { items: answer.requests, cursor: answer.cursor };
    },
    async events(options) {
      type Page = { events: TrackedEvent[]; cursor: string | null };
      const answer = await events<Page>("list", options);
      return { items: answer.events, cursor: answer.cursor };
    },
    topEvents: async (options) =>
      (await events<{ topEvents: Awaited<ReturnType<AdminAnalytics["topEvents"]>> }>("topEvents", options)).topEvents,
    funnel: async (steps, options) =>
      (
        await events<{ funnel: { eventName: string; users: number }[] }>("funnel", {
          ...options,
          steps: JSON.stringify(steps),
        })
      ).funnel,
    eventSeries: async (options) =>
      (await events<{ timeSeries: { timestamp: number; count: number }[] }>("timeSeries", options)).timeSeries,
  };
}
