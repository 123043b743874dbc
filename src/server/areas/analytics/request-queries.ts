import { SECOND_MS } from "../../../kernel/time/duration.ts";
import type { DatabaseFile, ReadCaller } from "../../db/index.ts";
import { LOWER_SQL, WIDTH_SQL } from "./latency-buckets.ts";
import type { EndpointSums, RequestQuery, RequestSums } from "./model.ts";
import { pointsOf } from "./query-parameters.ts";

export interface RequestFigures {
  /** JSON text of the whole series, points without requests are 0; empty if the metric has no series. */
  timeSeriesJson: string;
  totals: RequestSums & { uniqueUsers: number };
  /** Endpoints with requests, each with its histogram. */
  endpoints: EndpointSums[];
}

// Parameters of all parts: ?1 and ?2 the range in seconds, ?3 and ?4 the same in milliseconds, ?5 the step, ?6 and ?7 the first
// and the last point in milliseconds, ?8 the categories as JSON.
// Not every metric uses all of them, but SQLite refuses values for parameters that a statement does not have.
const ALL_PARAMETERS = "parameters AS (SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
const IN_CATEGORIES = "endpoint IN (SELECT id FROM endpoints WHERE category IN (SELECT value FROM json_each(?8)))";

const IS_NOT_SUMMED = `NOT EXISTS (
  SELECT 1 FROM summarized WHERE kind = 'requests' AND second >= since / 1000 AND second < until / 1000)`;

/** Returns SQL for the sources: single rows and summarised days. Every request is in exactly one of the two. */
const sourcesOf = (isFiltered: boolean): string => `
  singles AS NOT MATERIALIZED (
    SELECT endpoint, nullif(user_id, '') AS user_id, requests, iif(status >= 500, requests, 0) AS errors,
      iif(status >= 400 AND status < 500, requests, 0) AS errors_4xx, duration_us
    FROM requests
    WHERE second >= ?1 AND second < ?2 AND ${IS_NOT_SUMMED}
      ${isFiltered ? `AND ${IN_CATEGORIES}` : ""}),
  days AS NOT MATERIALIZED (
    SELECT * FROM request_days WHERE day >= ?3 AND day < ?4
      AND category ${isFiltered ? "IN (SELECT value FROM json_each(?8))" : "= ''"} AND endpoint = 0),
  histograms AS NOT MATERIALIZED (
    SELECT minute * 60000 AS at, endpoint, bucket, requests FROM latencies
    WHERE minute >= ?1 / 60 AND minute < (?2 + 59) / 60 AND NOT EXISTS (SELECT 1 FROM summarized
      WHERE kind = 'latencies' AND minute >= since / 60000 AND minute < until / 60000)
      ${isFiltered ? `AND ${IN_CATEGORIES}` : ""}
    UNION ALL
    SELECT day, endpoint, bucket, requests FROM latency_days WHERE day >= ?3 AND day < ?4
      ${isFiltered ? `AND ${IN_CATEGORIES}` : ""})`;

/** Returns SQL for one percentile of a point, as `percentilesOf` computes it; null in all other buckets. */
const percentile = (percent: number): string => {
  const rank = `((total * ${percent} + 99) / 100)`;
  const valueUs = `${LOWER_SQL} + ${WIDTH_SQL} * (${rank} - (upto - n) - 0.5) / n`;
  return `max(iif(upto >= ${rank} AND upto - n < ${rank}, round((${valueUs}) / 1000.0, 2), NULL)) AS p${percent}`;
};

/**
 * Returns SQL for the series. Each point reads its own range of rows in index order: grouping all rows would sort them first and
 * take half as long again.
 * `single` and `summed` are arrays of requests, errors, microseconds, users and 4xx answers; they are materialised because SQLite
 * would compute them again for each of these members otherwise.
 */
const seriesOf = (isFiltered: boolean): string => `
  points(at) AS (SELECT ?6 UNION ALL SELECT at + ?5 FROM points WHERE at < ?7),
  counted AS MATERIALIZED (SELECT at,
    (SELECT json_array(coalesce(sum(requests), 0), coalesce(sum(iif(status >= 500, requests, 0)), 0),
        coalesce(sum(duration_us), 0), count(DISTINCT nullif(user_id, '')),
        coalesce(sum(iif(status >= 400 AND status < 500, requests, 0)), 0))
      FROM requests WHERE second >= max(?1, at / 1000) AND second < min(?2, (at + ?5) / 1000)
        AND ${IS_NOT_SUMMED} ${isFiltered ? `AND ${IN_CATEGORIES}` : ""}) AS single,
    (SELECT json_array(coalesce(sum(requests), 0), coalesce(sum(errors), 0), coalesce(sum(duration_us), 0),
        coalesce(sum(users), 0), coalesce(sum(errors_4xx), 0))
      FROM days WHERE day >= at AND day < at + ?5) AS summed
    FROM points),
  spread AS (SELECT at / ?5 * ?5 AS point, bucket, sum(requests) AS n FROM histograms GROUP BY 1, 2),
  ranked AS (SELECT point, bucket, n, sum(n) OVER (PARTITION BY point ORDER BY bucket) AS upto,
    sum(n) OVER (PARTITION BY point) AS total FROM spread),
  percentiles AS MATERIALIZED (
    SELECT point, ${[50, 95, 99].map(percentile).join(", ")} FROM ranked GROUP BY point),
  series AS (SELECT at, (single ->> 0) + (summed ->> 0) AS requests, (single ->> 1) + (summed ->> 1) AS errors,
    (single ->> 2) + (summed ->> 2) AS duration_us, (single ->> 3) + (summed ->> 3) AS users,
    (single ->> 4) + (summed ->> 4) AS errors_4xx, p50, p95, p99
    FROM counted LEFT JOIN percentiles ON point = at)`;

const SELECT_SERIES = `
  SELECT 'series' AS part, json_group_array(json_object(
      'timestamp', at, 'requests', requests, 'errors', errors, 'errors4xx', errors_4xx,
      'avgLatency', iif(requests = 0, 0, round(duration_us / 1000.0 / requests, 2)),
      'p50', coalesce(p50, 0), 'p95', coalesce(p95, 0), 'p99', coalesce(p99, 0), 'uniqueUsers', users
    ) ORDER BY at) AS text, NULL AS id, NULL AS category, 0 AS requests, 0 AS errors, 0 AS errors_4xx, 0 AS duration_us,
    0 AS users
  FROM series`;

const SELECT_TOTALS = `
  SELECT 'totals', NULL, NULL, NULL, sum(requests), sum(errors), sum(errors_4xx), sum(duration_us), sum(users) FROM (
    SELECT sum(requests) AS requests, sum(errors) AS errors, sum(errors_4xx) AS errors_4xx,
      sum(duration_us) AS duration_us, count(DISTINCT user_id) AS users FROM singles
    UNION ALL
    SELECT sum(requests), sum(errors), sum(errors_4xx), sum(duration_us), sum(users) FROM days)`;

const selectEndpoints = (isFiltered: boolean): string => `
  SELECT 'endpoint', json_array(method, route, target), id, category, sum(requests), sum(errors), sum(errors_4xx),
    sum(duration_us), 0
  FROM (
    SELECT endpoint, sum(requests) AS requests, sum(errors) AS errors, sum(errors_4xx) AS errors_4xx,
      sum(duration_us) AS duration_us
    FROM singles GROUP BY endpoint
    UNION ALL
    SELECT endpoint, sum(requests), sum(errors), sum(errors_4xx), sum(duration_us) FROM request_days
    WHERE day >= ?3 AND day < ?4 AND endpoint <> 0 ${isFiltered ? `AND ${IN_CATEGORIES}` : ""} GROUP BY endpoint)
  JOIN endpoints ON id = endpoint GROUP BY id`;

/** SQL for rows of histograms, whose column `errors` has the bucket. */
const SELECT_LATENCIES = `
  SELECT 'latency', NULL, endpoint, NULL, sum(requests), bucket, 0, 0, 0 FROM histograms GROUP BY endpoint, bucket`;

/** Returns the SQL of a report: a single statement, so that all parts of an answer come from the same snapshot. */
function statementOf(metric: RequestQuery["metric"], isFiltered: boolean): string {
  const wantsSeries = metric === "overview" || metric === "timeSeries";
  const parts = [
    ...(wantsSeries ? [SELECT_SERIES] : []),
    ...(metric === "overview" ? [SELECT_TOTALS] : []),
    ...(metric === "timeSeries" ? [] : [selectEndpoints(isFiltered), SELECT_LATENCIES]),
  ];
  const sources = [ALL_PARAMETERS, sourcesOf(isFiltered), ...(wantsSeries ? [seriesOf(isFiltered)] : [])];
  return `WITH RECURSIVE ${sources.join(",")} ${parts.join(" UNION ALL ")}`;
}

type ReportRow = [
  part: string,
  text: string | null,
  id: number | null,
  category: string | null,
  requests: number | null,
  errors: number | null,
  errors4xx: number | null,
  durationUs: number | null,
  users: number | null,
];

/** Reads a report on requests, in a query process. Errors: those of `DatabaseFile.read`. */
export async function readRequestReport(
  file: DatabaseFile,
  { metric, range, categories }: RequestQuery,
  caller: ReadCaller,
): Promise<RequestFigures> {
  const { startMs, endMs, stepMs } = range;
  const { firstMs, lastMs } = pointsOf(range);
  // Requests are stored by the second: a second that the range cuts is included whole.
  const seconds = [Math.floor(startMs / SECOND_MS), Math.ceil(endMs / SECOND_MS)];
  const params = [...seconds, startMs, endMs, stepMs, firstMs, lastMs, JSON.stringify(categories ?? [])];
  // The cast follows the columns of the statement.
  const rows = (await file.read(statementOf(metric, categories !== null), params, { caller })) as ReportRow[];
  return figuresOf(rows);
}

function figuresOf(rows: readonly ReportRow[]): RequestFigures {
  const report: RequestFigures = {
    timeSeriesJson: "",
    totals: { requests: 0, errors: 0, errors4xx: 0, durationUs: 0, uniqueUsers: 0 },
    endpoints: [],
  };
  const byId = new Map<number, EndpointSums>();
  const latencies: { id: number; bucket: number; requests: number }[] = [];
  for (const [part, text, id, category, requests, errors, errors4xx, durationUs, users] of rows) {
    const counts = { requests: requests ?? 0, errors: errors ?? 0 };
    const sums = { ...counts, errors4xx: errors4xx ?? 0, durationUs: durationUs ?? 0 };
    if (part === "series") report.timeSeriesJson = text ?? "[]";
    else if (part === "totals") report.totals = { ...sums, uniqueUsers: users ?? 0 };
    else if (part === "latency") latencies.push({ id: id ?? 0, bucket: counts.errors, requests: counts.requests });
    else {
      // Three texts, as the statement makes it.
      const [method, route, target] = JSON.parse(text ?? "[]") as [string, string, string];
      byId.set(id ?? 0, { method, route, target, category: category ?? "", ...sums, latencies: new Map() });
    }
  }
  for (const { id, bucket, requests } of latencies) byId.get(id)?.latencies.set(bucket, requests);
  report.endpoints = [...byId.values()];
  return report;
}
