import type { Principals } from "../access/principals.ts";
import { AppError } from "../kernel/errors.ts";
import { chain, isPromise, type MaybePromise } from "../kernel/maybe-promise.ts";
import type { Connection, SignedIn } from "./connection.ts";
import type { Connections } from "./connections.ts";
import type { ErrorCode } from "./encoding.ts";
import type { Operations } from "./operations.ts";

type Fail = (connection: Connection, code: ErrorCode, message: string) => void;

/** What an `auth` message does, the first one and those that refresh. */
export function createAuthentication(
  deps: { connections: Connections; operations: Operations; principals: Principals },
  fail: Fail,
): (connection: Connection, token: string) => MaybePromise<void> {
  const { connections, operations } = deps;

  /** The principal of a token as it is now: a session may end while the signature is being checked. */
  const identify = (token: string): MaybePromise<SignedIn> => {
    const principal = deps.principals.ofToken(token);
    return isPromise(principal) ? principal.then(() => deps.principals.ofToken(token)) : principal;
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
  return (connection: Connection, token: string): MaybePromise<void> => {
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
}
