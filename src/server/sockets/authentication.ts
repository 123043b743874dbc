import { Type } from "typebox";
import { AppError } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/json/json.ts";
import { isPromise, type MaybePromise } from "../../kernel/maybe-promise.ts";
import type { Principals } from "../access/principals.ts";
import type { SessionLookup } from "../access/sessions.ts";
import type { Clients } from "./clients.ts";
import type { Connection, SignedIn, Visiting } from "./connection.ts";
import { type Answers, messageParser, type Protocol, problemWith } from "./protocol.ts";
import type { SessionIndex } from "./session-index.ts";

const NOBODY: Visiting = { kind: "anonymous" };

/** Returns the principal with the user's current role, email, its verification and phone; null when the session has ended. */
export function presentUser(sessions: SessionLookup, principal: SignedIn): SignedIn | null {
  const { auth, sessionId } = principal;
  const session = sessions.find(sessionId, auth.id);
  if (session === null) return null;
  const { role, email, emailVerified, phone, isAnonymous } = session;
  const isSame =
    role === auth.role &&
    email === auth.email &&
    emailVerified === auth.emailVerified &&
    phone === auth.phone &&
    isAnonymous === auth.isAnonymous;
  return isSame
    ? principal
    : { ...principal, auth: Object.freeze({ ...auth, role, email, emailVerified, phone, isAnonymous }) };
}

/** Whether a connection of `before` may become one of `principal`: the same user or key, or anyone after an anonymous one. */
function isSuccessor(before: Visiting, principal: Visiting): boolean {
  if (before.kind === "anonymous") return true;
  if (before.kind === "user") return principal.kind === "user" && principal.auth.id === before.auth.id;
  return principal.kind === "serviceKey" && principal.name === before.name;
}

/** Returns the handler of `auth` messages: the first one, and later ones that refresh. */
export function createAuthentication<State>(deps: {
  protocol: Protocol<State>;
  answers: Answers<State>;
  index: SessionIndex<Connection<State>>;
  principals: Pick<Principals, "ofToken" | "ofTicket">;
  clients: Pick<Clients, "enterAnonymously" | "leaveAnonymously">;
  /** Re-evaluates the rights of the connection's user and replies. */
  refresh(connection: Connection<State>, principal: Visiting): MaybePromise<void>;
  /** Called when a connection has authenticated as a service key. */
  onKey: () => void;
}): (connection: Connection<State>, message: JsonObject) => MaybePromise<void> {
  const { protocol, answers, index, principals, clients } = deps;
  const parser = messageParser("auth", { token: Type.String() }, protocol.envelope);
  const anonymousParser = messageParser("auth", { anonymous: Type.Literal(true) }, protocol.envelope);

  const refuse = (connection: Connection<State>, problem: string, about: JsonObject): void => {
    const code = connection.principal === null ? "AUTH_FAILED" : "AUTH_REFRESH_FAILED";
    answers.fail(connection, { code, message: problem }, about);
  };
  const accept = (connection: Connection<State>, principal: Visiting, about: JsonObject): MaybePromise<void> => {
    if (connection.isClosed) return;
    const before = connection.principal;
    if (before !== null && !isSuccessor(before, principal)) {
      return refuse(connection, "The token belongs to another user", about);
    }
    // The pending place is released below: connections without credentials need a bound of their own.
    if (before === null && principal.kind === "anonymous" && !clients.enterAnonymously(connection.client)) {
      return refuse(connection, "Too many anonymous connections of one address", about);
    }
    if (before?.kind === "anonymous" && principal.kind !== "anonymous") clients.leaveAnonymously(connection.client);
    if (before !== null) index.delete(connection, before);
    index.add(connection, principal);
    connection.principal = principal;
    if (principal.kind === "serviceKey") deps.onKey();
    if (before !== null) return deps.refresh(connection, principal);
    connection.pending?.release();
    connection.pending?.cancelTimeout?.();
    connection.pending = null;
    connection.forgetMessages();
    protocol.authenticated(connection, principal);
  };
  const visit = (connection: Connection<State>, message: JsonObject): MaybePromise<void> => {
    const problem = problemWith(anonymousParser, message);
    if (problem === null) return accept(connection, NOBODY, message);
    return answers.fail(connection, { code: "INVALID_MESSAGE", message: problem }, message);
  };

  return (connection, message) => {
    const refused = (cause: unknown): void => {
      if (!(cause instanceof AppError)) throw cause;
      refuse(connection, cause.message, message);
    };
    if (protocol.allowsAnonymous && Object.hasOwn(message, "anonymous")) return visit(connection, message);
    const problem = problemWith(parser, message);
    if (problem !== null) {
      const isTokenWrong = typeof message["token"] !== "string";
      if (isTokenWrong) return refuse(connection, problem, message);
      return answers.fail(connection, { code: "INVALID_MESSAGE", message: problem }, message);
    }
    const token = String(message["token"]);
    try {
      const keyHolder = protocol.allowsAnonymous ? principals.ofTicket(token, () => connection.address) : null;
      if (keyHolder !== null) return accept(connection, keyHolder, message);
      const principal = principals.ofToken(token);
      if (!isPromise(principal)) return accept(connection, principal, message);
      // Verified a second time: the session may have ended while this connection was not yet in its index.
      return principal
        .then(() => principals.ofToken(token))
        .then((present) => accept(connection, present, message))
        .catch(refused);
    } catch (cause) {
      return refused(cause);
    }
  };
}
