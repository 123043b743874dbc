import type { Transport } from "../transport/types.ts";
import type {
  AdminAnalytics,
  AdminAudit,
  AuditEntry,
  RequestPoint,
  RequestSummary,
  RequestTarget,
  SlowRequest,
  TrackedEvent,
} from "./history-types.ts";

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
