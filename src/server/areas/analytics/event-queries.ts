import { encodeCursor } from "../../../kernel/records/page-cursor.ts";
import type { DatabaseFile, ReadCaller, SqlValue } from "../../db/index.ts";
import type { EventCounts, EventPage, EventQuery, EventRank, FunnelStep } from "./model.ts";
import { pointsOf } from "./query-parameters.ts";

// Parameters of all statements: ?1 and ?2 the range, ?3 the name, ?4 the user (empty if not filtered).
const ALL_PARAMETERS = "parameters AS (SELECT ?1, ?2, ?3, ?4)";

/** SQL for whether an event belongs to a day that is not summarised. */
const IS_SINGLE =
  "NOT EXISTS (SELECT 1 FROM summarized WHERE kind = 'events' AND timestamp >= since AND timestamp < until)";

const matching = ({ event, userId }: EventQuery): string =>
  ["timestamp >= ?1 AND timestamp < ?2", event === null ? "" : "name = ?3", userId === null ? "" : "user_id = ?4"]
    .concat(IS_SINGLE)
    .filter((condition) => condition !== "")
    .join(" AND ");

/** Returns the condition on rows of summaries. They have the number of users but no ids, so a filter by user excludes them. */
const daysOf = ({ event, userId }: EventQuery, names: "one name" | "every name"): string => {
  const total = names === "every name" ? "name <> ''" : "name = ''";
  // The row with the empty name has the totals.
  const name = event === null ? total : "name = ?3 AND name <> ''";
  return `day >= ?1 AND day < ?2 AND ${name}${userId === null ? "" : " AND FALSE"}`;
};

const paramsOf = ({ range, event, userId }: EventQuery): SqlValue[] => {
  const { startMs, endMs } = range;
  return [startMs, endMs, event ?? "", userId ?? ""];
};

type EventRow = [id: number, timestamp: number, userId: string | null, name: string, properties: string];

/** Queries over events, which all run in query processes. Errors: those of `DatabaseFile.read`. */
export type EventQueries = ReturnType<typeof createEventQueries>;

export function createEventQueries(file: DatabaseFile) {
  return {
    /** Lists single events, newest first; none of summarised days. */
    async list(query: EventQuery, caller: ReadCaller): Promise<EventPage> {
      const { after, limit } = query;
      const sql = `WITH ${ALL_PARAMETERS} SELECT id, timestamp, user_id, name, properties FROM events
        WHERE ${matching(query)} AND (timestamp, id) < (?5, ?6) ORDER BY timestamp DESC, id DESC LIMIT ?7`;
      const place = after ?? { timestamp: query.range.endMs, id: 0 };
      // The upper bound lets the index be entered at the cursor, however far back it is.
      const range = { ...query.range, endMs: Math.min(query.range.endMs, place.timestamp + 1) };
      // One row more than requested shows whether there is a next page. The cast follows the columns of the statement.
      const params = [...paramsOf({ ...query, range }), place.timestamp, place.id, limit + 1];
      const rows = (await file.read(sql, params, { caller })) as EventRow[];
      const hasMore = rows.length > limit;
      if (hasMore) rows.pop();
      const last = rows.at(-1);
      return {
        events: rows.map(([id, timestamp, userId, eventName, properties]) => ({
          id: String(id),
          timestamp,
          userId,
          eventName,
          // Serialised by the server from validated properties.
          properties: JSON.parse(properties) as EventPage["events"][number]["properties"],
        })),
        cursor: hasMore && last !== undefined ? encodeCursor(last[1], last[0]) : null,
        hasMore,
      };
    },
    async count(query: EventQuery, caller: ReadCaller): Promise<EventCounts> {
      const sql = `WITH ${ALL_PARAMETERS} SELECT sum(events), sum(users) FROM (
          SELECT count(*) AS events, count(DISTINCT user_id) AS users FROM events WHERE ${matching(query)}
          UNION ALL
          SELECT sum(events), sum(users) FROM event_days WHERE ${daysOf(query, "one name")})`;
      const [[totalEvents, uniqueUsers] = []] = await file.read(sql, paramsOf(query), { caller });
      return { totalEvents: Number(totalEvents), uniqueUsers: Number(uniqueUsers) };
    },
    /** Resolves to the JSON text of the whole series; points without events are 0. */
    async timeSeriesJson(query: EventQuery, caller: ReadCaller): Promise<string> {
      const sql = `WITH RECURSIVE ${ALL_PARAMETERS},
        points(at) AS (SELECT ?6 UNION ALL SELECT at + ?5 FROM points WHERE at < ?7),
        series AS MATERIALIZED (SELECT point, sum(events) AS events FROM (
            SELECT timestamp / ?5 * ?5 AS point, count(*) AS events FROM events WHERE ${matching(query)} GROUP BY 1
            UNION ALL
            SELECT day / ?5 * ?5, sum(events) FROM event_days WHERE ${daysOf(query, "one name")} GROUP BY 1)
          GROUP BY point)
        SELECT json_group_array(json_object('timestamp', at, 'count', coalesce(events, 0)) ORDER BY at)
        FROM points LEFT JOIN series ON point = at`;
      const { firstMs, lastMs } = pointsOf(query.range);
      const params = [...paramsOf(query), query.range.stepMs, firstMs, lastMs];
      const [[text] = []] = await file.read(sql, params, { caller });
      return String(text);
    },
    /** Lists the most frequent names. */
    async top(query: EventQuery, caller: ReadCaller): Promise<EventRank[]> {
      const sql = `WITH ${ALL_PARAMETERS} SELECT name, sum(events), sum(users) FROM (
          SELECT name, count(*) AS events, count(DISTINCT user_id) AS users FROM events WHERE ${matching(query)} GROUP BY name
          UNION ALL
          SELECT name, sum(events), sum(users) FROM event_days WHERE ${daysOf(query, "every name")} GROUP BY name)
        GROUP BY name ORDER BY 2 DESC, 1 LIMIT ?5`;
      const rows = await file.read(sql, [...paramsOf(query), query.limit], { caller });
      return rows.map(([name, count, users]) => ({
        eventName: String(name),
        count: Number(count),
        uniqueUsers: Number(users),
      }));
    },
    /** Counts the users who have done each step after the step before it. Summarised days do not count, as they have no user ids. */
    async funnel({ range, steps }: EventQuery, caller: ReadCaller): Promise<FunnelStep[]> {
      const [counts = []] = await file.read(funnelOf(steps.length), [range.startMs, range.endMs, ...steps], { caller });
      return steps.map((eventName, step) => ({ eventName, users: Number(counts[step]) }));
    },
  };
}

/**
 * Returns SQL that counts the users of each step. Parameters: ?1 and ?2 the range, then one name per step. The earliest event that
 * can be a step is the best one: whatever can follow a later event can follow it too. A bare column beside min() has the value of
 * the row with the minimum.
 */
function funnelOf(steps: number): string {
  const numbers = Array.from({ length: steps }, (_, step) => step);
  const parts = numbers.map((step) => {
    const before = step === 0 ? "" : `JOIN step${step - 1} AS earlier ON earlier.user = events.user_id`;
    const after = step === 0 ? "user_id IS NOT NULL" : "(timestamp, events.id) > (earlier.at, earlier.id)";
    return `step${step} AS MATERIALIZED (SELECT user_id AS user, min(timestamp) AS at, events.id FROM events ${before}
      WHERE timestamp >= ?1 AND timestamp < ?2 AND name = ?${step + 3} AND ${after} AND ${IS_SINGLE} GROUP BY user_id)`;
  });
  return `WITH ${parts.join(", ")} SELECT ${numbers.map((step) => `(SELECT count(*) FROM step${step})`).join(", ")}`;
}
