import type { Principals } from "../access/principals.ts";
import type { Clock } from "../kernel/clock.ts";
import { AppError } from "../kernel/errors.ts";
import { isJsonObject } from "../kernel/json.ts";
import type { Logger } from "../kernel/logger.ts";
import { chain, isPromise, type MaybePromise } from "../kernel/maybe-promise.ts";
import { type ClientMessage, type MessageProblem, parseClientMessage, parseJson } from "./client-message.ts";
import { CLOSE, type Connection, type ConnectionEvents, type SignedIn } from "./connection.ts";
import type { Connections } from "./connections.ts";
import type { ErrorCode } from "./encoding.ts";
import { MAILBOX_MAX, MESSAGE_MAX_BYTES } from "./limits.ts";
import type { Operations } from "./operations.ts";

/** The protocol: who may say what when, and what is answered. Spec: Realtime connection; decisions 10. */
export function createProtocol(deps: {
  connections: Connections;
  operations: Operations;
  principals: Principals;
  clock: Clock;
  logger: Logger;
  authTimeoutMs: number;
}): ConnectionEvents {
  const { connections, operations, clock } = deps;

  const fail = (connection: Connection, code: ErrorCode, message: string, channel: string | null = null): void =>
    connection.send({ type: "error", code, message, ...(channel === null ? {} : { channel }) });
  const failAndClose = (connection: Connection, code: ErrorCode, message: string): void => {
    fail(connection, code, message);
    connection.end(CLOSE.protocol, message);
  };

  /** The principal of a token as it is now: a session may end while the signature is being checked. */
  const identify = (token: string): MaybePromise<SignedIn> => {
    const principal = deps.principals.ofToken(token);
    return isPromise(principal) ? principal.then(() => deps.principals.ofToken(token)) : principal;
  };
  const authenticate = (connection: Connection, token: string): MaybePromise<void> => {
    const refused = (cause: unknown): void => {
      if (!(cause instanceof AppError)) throw cause;
      if (connection.principal === null) connection.send({ type: "auth_error", message: cause.message });
      else fail(connection, "AUTH_REFRESH_FAILED", cause.message);
    };
    try {
      const done = chain(identify(token), (principal) => accept(connection, principal));
      return isPromise(done) ? done.catch(refused) : undefined;
    } catch (cause) {
      return refused(cause);
    }
  };
  const accept = (connection: Connection, principal: SignedIn): MaybePromise<void> => {
    if (connection.isClosed) return;
    const before = connection.principal;
    if (before === null) {
      connections.authenticated(connection, principal);
      return connection.send({ type: "auth_success", userId: principal.auth.id });
    }
    if (before.auth.id !== principal.auth.id) {
      return fail(connection, "AUTH_REFRESH_FAILED", "The token belongs to another user");
    }
    connections.authenticated(connection, principal);
    return operations.refresh(connection, principal).then((revokedChannels) => {
      connection.send({ type: "auth_refreshed", userId: principal.auth.id, revokedChannels });
    });
  };

  const answer = (
    connection: Connection,
    message: Exclude<ClientMessage, { type: "ping" }> | MessageProblem,
    isAuth: boolean,
  ): MaybePromise<void> => {
    const { principal } = connection;
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

  const events: ConnectionEvents = {
    opened(connection) {
      connection.cancelAuthTimeout = clock.after(deps.authTimeoutMs, () => {
        failAndClose(connection, "AUTH_TIMEOUT", `No auth within ${deps.authTimeoutMs} ms`);
      });
    },
    received(connection, message) {
      if (!connection.rate.take(clock.now())) return fail(connection, "RATE_LIMITED", "Too many messages");
      const tooLong = Buffer.byteLength(message) > MESSAGE_MAX_BYTES;
      if (tooLong) return fail(connection, "MESSAGE_TOO_LARGE", `A message has at most ${MESSAGE_MAX_BYTES} bytes`);
      const json = parseJson(message);
      if (json === null) return failAndClose(connection, "INVALID_JSON", "The message is not valid JSON");
      const parsed = parseClientMessage(json.value, connection.defaultChannel);
      // Says that somebody is there, and so does not wait for what is under way.
      if (parsed.type === "ping") {
        operations.ping(connection);
        return connection.send({ type: "pong" });
      }
      const isAuth = isJsonObject(json.value) && json.value["type"] === "auth";
      const hasWaited = connection.takeTurn(() => answer(connection, parsed, isAuth), MAILBOX_MAX);
      if (!hasWaited) fail(connection, "RATE_LIMITED", "Too many messages wait");
    },
    closed(connection, wasClean) {
      operations.leave(connection, wasClean);
      connections.closed(connection);
    },
    failed(connection, cause) {
      deps.logger.error("a realtime message failed", { cause });
      fail(connection, "INTERNAL", "Internal error");
    },
  };

  return events;
}
