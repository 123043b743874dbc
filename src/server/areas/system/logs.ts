import { type Static, Type } from "typebox";
import { LOG_LEVELS, type LogLevel, type LogLine, type LogLines } from "../../../kernel/observing/log-lines.ts";
import { nullable } from "../../../kernel/schema/types.ts";
import { parseSpan, type TimeSpan } from "../../../kernel/time/iso-datetime.ts";
import { type Pace, Scheduler } from "../../../kernel/time/scheduler.ts";
import { VERSION } from "../../../kernel/version.ts";
import { requireServiceKey } from "../../access/service-key-right.ts";
import { type Endpoint, endpoint } from "../../http/endpoint.ts";
import type { AreaSockets } from "../../sockets/area-sockets.ts";
import type { Connection } from "../../sockets/connection.ts";
import type { PendingPlaces } from "../../sockets/pending-places.ts";
import { declareMessages, type Protocol } from "../../sockets/protocol.ts";
import { LOGS_LIMIT_DEFAULT, LOGS_LIMIT_MAX, LOGS_QUERY_LENGTH_MAX, TAIL_LIMITS } from "./limits.ts";

const ShownLine = Type.Object({
  at: Type.String({ format: "date-time" }),
  level: Type.Enum([...LOG_LEVELS]),
  message: Type.String(),
  facts: nullable(Type.Record(Type.String(), Type.Unknown())),
});
type ShownLine = Static<typeof ShownLine>;

const Lines = Type.Object({ lines: Type.Array(ShownLine) }, { description: "The newest first" });

/** Endpoints for the last lines of the log, and a WebSocket that sends new ones. */
export function logEndpoints(deps: {
  lines: LogLines;
  connections: AreaSockets<TailState>;
  places: PendingPlaces;
}): readonly Endpoint[] {
  const { lines, connections, places } = deps;
  const scheduler = new Scheduler();
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
        from: Type.Optional(Type.String({ description: "The first moment, in milliseconds since 1970 or ISO 8601" })),
        to: Type.Optional(Type.String({ description: "The moment after the last one" })),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: LOGS_LIMIT_MAX, default: LOGS_LIMIT_DEFAULT })),
      },
      answers: { 200: Lines },
      errors: [400],
    },
    async ({ principal, query }) => {
      requireServiceKey(principal, ["system", "*", "*", "read"]);
      const { level, q, from, to, limit = LOGS_LIMIT_DEFAULT } = query();
      const filter = { ...filterOf(level, q), ...parseSpan({ from, to }) };
      const found = await search(lines.kept(), filter, { limit, pace: scheduler.pace() });
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

/** Filter of log lines. */
interface LogFilter {
  /** Lowest level. */
  level: LogLevel;
  /** Part of the message or the facts, in lower case. Empty: any. */
  text: string;
}

const filterOf = (level: LogLevel = "info", q = ""): LogFilter & TimeSpan => ({
  level,
  text: q.toLowerCase(),
  from: null,
  to: null,
});

function isWanted({ at, level, message, facts }: LogLine, filter: LogFilter & TimeSpan): boolean {
  if ((filter.from !== null && at < filter.from) || (filter.to !== null && at >= filter.to)) return false;
  if (LOG_LEVELS.indexOf(level) < LOG_LEVELS.indexOf(filter.level)) return false;
  const { text } = filter;
  return text === "" || message.toLowerCase().includes(text) || facts?.toLowerCase().includes(text) === true;
}

/** Finds at most `limit` lines, newest first, over several turns of the event loop, as the lines may total megabytes. */
async function search(
  lines: readonly LogLine[],
  filter: LogFilter & TimeSpan,
  { limit, pace }: { limit: number; pace: Pace },
): Promise<LogLine[]> {
  const found: LogLine[] = [];
  for (const line of lines.toReversed()) {
    if (found.length === limit) break;
    if (isWanted(line, filter)) found.push(line);
    if (pace.isDue()) await pace.next();
  }
  return found;
}

const shownLine = ({ at, level, message, facts }: LogLine): ShownLine => ({
  at: new Date(at).toISOString(),
  level,
  message,
  facts: facts === null ? null : JSON.parse(facts),
});

/** State of a connection that may follow the log. */
interface TailState {
  /** Stops following; null: the connection does not follow. */
  stop: (() => void) | null;
}
type ErrorCode = "ACCESS_DENIED";

const declare = declareMessages<TailState, ErrorCode>({});
const Follow = {
  level: Type.Optional(Type.Enum([...LOG_LEVELS])),
  q: Type.Optional(Type.String({ maxLength: LOGS_QUERY_LENGTH_MAX })),
};

/** Creates the protocol that follows the log: `follow` sends each new line that passes its filter, and replaces an earlier one. [SY22] */
export function createTail(lines: LogLines): Protocol<TailState, ErrorCode> {
  const end = ({ state }: Connection<TailState>): void => {
    state.stop?.();
    state.stop = null;
  };
  return {
    name: "logs",
    envelope: {},
    // A ticket authenticates as a service key. Anonymous connections may connect, but not follow.
    allowsAnonymous: true,
    messages: [
      declare("follow", Follow, (connection, { level, q }, principal) => {
        if (principal.kind !== "serviceKey" || !principal.scopes.allows("system", "*", "*", "read")) {
          return { code: "ACCESS_DENIED", message: "The log needs a service key with system:*:*:read" };
        }
        end(connection);
        const filter = filterOf(level, q);
        connection.state.stop = lines.follow((line) => {
          if (isWanted(line, filter)) connection.send({ type: "line", line: shownLine(line) });
        });
        connection.send({ type: "following" });
        return null;
      }),
    ],
    errorText({ code, message }) {
      if (code === "AUTH_FAILED") return JSON.stringify({ type: "auth_error", message });
      return JSON.stringify({ type: "error", code, message });
    },
    authenticated: (connection) => connection.send({ type: "auth_success", version: VERSION }),
    refreshed(connection) {
      connection.send({ type: "auth_success", version: VERSION });
      return null;
    },
    userChanged: () => null,
    pinged: (connection) => connection.send({ type: "pong" }),
    closed(connection) {
      end(connection);
      return null;
    },
  };
}
