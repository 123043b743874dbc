import type { Principals } from "../access/principals.ts";
import type { Clock } from "../kernel/clock.ts";
import { describeFault, isJsonObject, type JsonValue } from "../kernel/json.ts";
import type { Logger } from "../kernel/logger.ts";
import { chain, isPromise, type MaybePromise } from "../kernel/maybe-promise.ts";
import { createTurns } from "../kernel/turns.ts";
import { LONG_MESSAGE_MIN_CHARS } from "../sockets/limits.ts";
import { isPing, parseMessage } from "../sockets/message-text.ts";
import type { MessageTurns } from "../sockets/message-turns.ts";
import { createAuthentication } from "./authentication.ts";
import { type ClientMessage, type MessageProblem, malformed, parseClientMessage } from "./client-message.ts";
import { CLOSE, type Connection, type ConnectionEvents } from "./connection.ts";
import type { Connections } from "./connections.ts";
import type { ErrorCode } from "./encoding.ts";
import { MESSAGE_MAX_BYTES } from "./limits.ts";
import type { Operations } from "./operations.ts";

/** The protocol: who may say what when, and what is answered. Spec: Realtime connection; decisions 10. */
export function createProtocol(deps: {
  connections: Connections;
  operations: Operations;
  principals: Principals;
  clock: Clock;
  logger: Logger;
  turns: MessageTurns;
  authTimeoutMs: number;
}): ConnectionEvents {
  const { connections, operations, turns, clock } = deps;
  const slices = createTurns();

  const fail = (connection: Connection, code: ErrorCode, message: string, channel: string | null = null): void =>
    connection.send({ type: "error", code, message, ...(channel === null ? {} : { channel }) });
  const failAndClose = (connection: Connection, code: ErrorCode, message: string): void => {
    fail(connection, code, message);
    connection.end(CLOSE.protocol, message);
  };

  const authenticate = createAuthentication(deps, fail);
  const answer = (connection: Connection, value: JsonValue): MaybePromise<void> =>
    perform(
      connection,
      parseClientMessage(value, connection.defaultChannel),
      isJsonObject(value) && value["type"] === "auth",
    );
  const perform = (
    connection: Connection,
    message: ClientMessage | MessageProblem,
    isAuth: boolean,
  ): MaybePromise<void> => {
    const { principal } = connection;
    if (message.type === "ping") {
      operations.ping(connection);
      return connection.send({ type: "pong" });
    }
    if (principal === null && !isAuth) {
      return failAndClose(connection, "NOT_AUTHENTICATED", "The first message must be auth");
    }
    if (message.type === "auth") return authenticate(connection, message.token);
    if (message.type === "problem") {
      if (principal === null) return connection.send({ type: "auth_error", message: message.message });
      return fail(connection, message.code, message.message, message.channel);
    }
    if (principal === null) throw new Error("asked before");
    return chain(operations.perform(connection, principal, message), (failure) => {
      if (failure !== null) fail(connection, failure.code, failure.message, message.channel);
    });
  };

  const failed = (connection: Connection, cause: unknown): void => {
    deps.logger.error("a realtime message failed", { cause });
    fail(connection, "INTERNAL", "Internal error");
  };
  /** One message in its turn. */
  const handle = (connection: Connection, message: string | Buffer): MaybePromise<void> => {
    if (connection.isClosed) return;
    const crashed = (cause: unknown): void => failed(connection, cause);
    try {
      const handled = chain(parseMessage(typeof message === "string" ? message : "null", slices), (parsed) => {
        if (connection.isClosed) return;
        if (parsed.kind === "value") return answer(connection, parsed.value);
        if (parsed.fault === null) return failAndClose(connection, "INVALID_JSON", "The message is not valid JSON");
        return perform(connection, malformed(describeFault("the message", parsed.fault)), false);
      });
      return isPromise(handled) ? handled.catch(crashed) : undefined;
    } catch (cause) {
      return crashed(cause);
    }
  };

  const events: ConnectionEvents = {
    opened(connection) {
      connection.cancelAuthTimeout = clock.after(deps.authTimeoutMs, () => {
        failAndClose(connection, "AUTH_TIMEOUT", `No auth within ${deps.authTimeoutMs} ms`);
      });
    },
    received(connection, message) {
      const chars = message.length;
      if (!connection.rate.take(1, clock.now())) return fail(connection, "RATE_LIMITED", "Too many messages");
      if (Buffer.byteLength(message) > MESSAGE_MAX_BYTES) {
        return fail(connection, "MESSAGE_TOO_LARGE", `A message has at most ${MESSAGE_MAX_BYTES} bytes`);
      }
      if (chars >= LONG_MESSAGE_MIN_CHARS) {
        const isWithin =
          connection.charRate.take(chars, clock.now()) && connections.takeChars(connection.client, chars);
        if (!isWithin) return fail(connection, "RATE_LIMITED", "Too many long messages");
      } else if (typeof message === "string" && isPing(message)) {
        // Says that somebody is there, and so does not wait for what is under way.
        operations.ping(connection);
        return connection.send({ type: "pong" });
      }
      if (!turns.take(connection, chars, () => handle(connection, message))) {
        fail(connection, "RATE_LIMITED", "Too many messages wait");
      }
    },
    closed(connection, wasClean) {
      turns.drop(connection);
      operations.leave(connection, wasClean);
      connections.closed(connection);
    },
    failed,
  };

  return events;
}
