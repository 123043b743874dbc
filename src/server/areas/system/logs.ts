import { Type } from "typebox";
import { LOG_LEVELS, type LogLines } from "../../../kernel/observing/log-lines.ts";
import { nullable } from "../../../kernel/schema/types.ts";
import { requireServiceKey } from "../../access/service-key-right.ts";
import { type Endpoint, endpoint } from "../../http/endpoint.ts";
import type { AreaSockets } from "../../sockets/area-sockets.ts";
import type { PendingPlaces } from "../../sockets/pending-places.ts";
import { LOGS_LIMIT_DEFAULT, LOGS_LIMIT_MAX, LOGS_QUERY_LENGTH_MAX, TAIL_LIMITS } from "./limits.ts";
import { filterOf, search, shownLine } from "./log-search.ts";
import type { TailState } from "./log-tail.ts";

const Lines = Type.Object(
  {
    lines: Type.Array(
      Type.Object({
        at: Type.String({ format: "date-time" }),
        level: Type.Enum([...LOG_LEVELS]),
        message: Type.String(),
        facts: nullable(Type.Record(Type.String(), Type.Unknown())),
      }),
    ),
  },
  { description: "The newest first" },
);

/** The last lines of the log, and a WebSocket with the next ones. */
export function logEndpoints(deps: {
  lines: LogLines;
  connections: AreaSockets<TailState>;
  places: PendingPlaces;
}): readonly Endpoint[] {
  const { lines, connections, places } = deps;
  const list = endpoint(
    "GET /api/admin/logs",
    {
      tag: "System",
      summary: "Read the last lines of the server's log",
      description: "Of the last 10,000 lines since the start. Facts are cut, and have no secrets.",
      caller: "serviceKey",
      place: "none",
      query: {
        level: Type.Optional(
          Type.Enum([...LOG_LEVELS], { default: "info", description: "This level and those above it" }),
        ),
        q: Type.Optional(
          Type.String({ maxLength: LOGS_QUERY_LENGTH_MAX, description: "A part of message or facts, in any case" }),
        ),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: LOGS_LIMIT_MAX, default: LOGS_LIMIT_DEFAULT })),
      },
      answers: { 200: Lines },
      errors: [400],
    },
    async ({ principal, query }) => {
      requireServiceKey(principal, ["system", "*", "*", "read"]);
      const { level, q, limit = LOGS_LIMIT_DEFAULT } = query();
      const found = await search(lines.kept(), filterOf(level, q), limit);
      return { lines: found.map(shownLine) };
    },
  );
  const tail = endpoint(
    "GET /api/admin/logs/live",
    {
      tag: "System",
      summary: "Follow the server's log",
      description:
        "A WebSocket. Its first message is `auth` with a ticket of `POST /api/admin/socket-ticket`, whose key has the scope " +
        '`system:*:*:read`; then `{ type: "follow", level, q }`.',
      caller: "open",
      place: "none",
      answers: { 101: { description: "The connection is a WebSocket" } },
      errors: [400, 429, 503],
    },
    (context) => {
      context.query();
      return connections.open(context, { limits: TAIL_LIMITS, places, state: () => ({ stop: null }) });
    },
  );
  return [list, tail];
}
