import { type Static, Type } from "typebox";
import type { JsonObject, JsonValue } from "../../kernel/json.ts";
import { createParser } from "../../kernel/schema/parser.ts";
import type { SignedIn } from "../../sockets/connection.ts";
import { declareMessages, type Failure, type MessageType, type Protocol } from "../../sockets/protocol.ts";
import { MESSAGE_VALUES_MAX } from "../limits.ts";
import type { RoomsService } from "../service.ts";
import { authRefreshed, authSuccess, errorMessage, PONG, type RoomErrorCode } from "./messages.ts";
import { isWithinValues } from "./value-count.ts";
import type { Visitor, VisitorConnection } from "./visitor.ts";

/** Any message may carry a `requestId`; an error that answers it repeats it where it is a string. */
const ENVELOPE = { requestId: Type.Optional(Type.Unknown()) };
/** What the client knows of a state. The `sync` that answers holds all of it anyway. */
const Hint = Type.Optional(Type.Unknown());
/** A message is JSON and has no other values. */
const Json = Type.Unsafe<JsonValue>(Type.Unknown());

const Action = Type.Object({
  type: Type.Literal("send"),
  actionType: Type.String({ minLength: 1 }),
  payload: Type.Optional(Json),
  requestId: Type.String(),
});
const actionParser = createParser(Action);

const failure = (code: RoomErrorCode, message: string): Failure<RoomErrorCode> => ({ code, message });
const NOT_JOINED = failure("NOT_JOINED", "The first message after auth must be join");

/** What rooms say over their connections. */
export function createProtocol(deps: {
  service: Pick<RoomsService, "join">;
  /** Connections that have authenticated. */
  visitors: Set<Visitor>;
}): Protocol<Visitor, RoomErrorCode> {
  const { service, visitors } = deps;
  return {
    name: "room",
    messages: createMessages(service),
    envelope: ENVELOPE,
    errorText: ({ code, message }, about) =>
      errorMessage(code === "MESSAGE_TOO_LARGE" ? "INVALID_MESSAGE" : code, message, about?.["requestId"]),
    authenticated(connection, principal) {
      connection.state.authenticated(connection);
      visitors.add(connection.state);
      connection.sendText(authSuccess(principal.auth.id, connection.id));
    },
    refreshed: (connection, principal) => connection.sendText(authRefreshed(principal.auth.id, connection.id)),
    // Handlers get the user as of now from the connection.
    userChanged() {},
    pinged: (connection) => connection.sendText(PONG),
    closed({ state }, code) {
      visitors.delete(state);
      state.closed(code);
    },
  };
}

function createMessages(service: Pick<RoomsService, "join">): readonly MessageType<Visitor, RoomErrorCode>[] {
  const declare = declareMessages<Visitor, RoomErrorCode>(ENVELOPE);
  const hints = { lastSharedState: Hint, lastSharedVersion: Hint, lastPlayerState: Hint, lastPlayerVersion: Hint };
  // What an action needs is judged once the connection has joined, by `Action`.
  const action = { actionType: Type.Optional(Type.Unknown()), payload: Type.Optional(Json) };
  return [
    declare("join", hints, (connection, _, principal) => join(service, connection, principal)),
    declare("send", action, (connection, message, _, chars) => act(connection.state, message as JsonObject, chars)),
  ];
}

async function join(
  service: Pick<RoomsService, "join">,
  connection: VisitorConnection,
  principal: SignedIn,
): Promise<Failure<RoomErrorCode> | null> {
  const visitor = connection.state;
  if (visitor.room !== null) {
    visitor.room.resync(visitor);
    return null;
  }
  const { room, outcome } = await service.join(visitor.address, visitor, principal.auth);
  if (outcome.kind === "full") return failure("ROOM_FULL", `The room has its ${outcome.maxPlayers} players`);
  if (outcome.kind === "denied" || room === null) {
    return failure("JOIN_DENIED", outcome.kind === "denied" ? outcome.message : "Access denied");
  }
  visitor.room = room;
  connection.forgetMessages();
  // It closed before it had its room.
  if (connection.closeCode !== null) room.connectionClosed(visitor, connection.closeCode);
  return null;
}

function act(visitor: Visitor, message: JsonObject, chars: number): Failure<RoomErrorCode> | null {
  const { room, address } = visitor;
  if (room === null) return NOT_JOINED;
  const problems = actionParser.problemsOf(message);
  if (problems !== null) {
    const [problem] = Object.values(problems);
    return failure("INVALID_ACTION", problem?.message ?? "The action is not valid");
  }
  // The parser has accepted it.
  const { actionType, payload = {}, requestId } = message as unknown as Static<typeof Action>;
  if (!Object.hasOwn(address.namespace.config.actions ?? {}, actionType)) {
    return failure("NO_HANDLER", `There is no action "${actionType}"`);
  }
  // A value takes one character and a comma, so that a shorter message holds fewer.
  if (chars > 2 * MESSAGE_VALUES_MAX && !isWithinValues(payload, MESSAGE_VALUES_MAX)) {
    return failure("INVALID_MESSAGE", `The payload of an action must hold at most ${MESSAGE_VALUES_MAX} values`);
  }
  room.act(visitor, { type: actionType, payload, requestId, chars });
  return null;
}
