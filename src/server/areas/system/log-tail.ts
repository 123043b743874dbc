import { Type } from "typebox";
import { LOG_LEVELS, type LogLines } from "../../../kernel/observing/log-lines.ts";
import { VERSION } from "../../../kernel/version.ts";
import type { Connection } from "../../sockets/connection.ts";
import { declareMessages, type Protocol } from "../../sockets/protocol.ts";
import { LOGS_QUERY_LENGTH_MAX } from "./limits.ts";
import { filterOf, isWanted, shownLine } from "./log-search.ts";

/** What a connection follows. */
export interface TailState {
  /** Ends what it follows; null: nothing. */
  stop: (() => void) | null;
}
type ErrorCode = "ACCESS_DENIED";

const declare = declareMessages<TailState, ErrorCode>({});
const Follow = {
  level: Type.Optional(Type.Enum([...LOG_LEVELS])),
  q: Type.Optional(Type.String({ maxLength: LOGS_QUERY_LENGTH_MAX })),
};

/** The log as it is written: `follow` sends each line from then on that passes its filter; another one replaces it. [SY22] */
export function createTail(lines: LogLines): Protocol<TailState, ErrorCode> {
  const end = ({ state }: Connection<TailState>): void => {
    state.stop?.();
    state.stop = null;
  };
  return {
    name: "logs",
    envelope: {},
    // With a ticket, a service key. Nobody may follow anything.
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
