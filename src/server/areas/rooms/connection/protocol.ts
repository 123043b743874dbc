import { Type } from "typebox";
import type { JsonObject, JsonValue } from "../../../../kernel/json/json.ts";
import { createParser } from "../../../../kernel/schema/parser.ts";
import type { SignedIn, Visiting } from "../../../sockets/connection.ts";
import { PROBLEM_SHOWN_LENGTH } from "../../../sockets/limits.ts";
import { declareMessages, type Failure, type MessageType, type Protocol } from "../../../sockets/protocol.ts";
import { MESSAGE_VALUES_MAX } from "../limits.ts";
import { authRefreshed, authSuccess, errorMessage, PONG, type RoomErrorCode } from "../messages.ts";
import type { RoomsService } from "../service.ts";

import type { Visitor, VisitorConnection } from "./visitor.ts";

/** Optional `requestId` of every message. An error that answers the message repeats it when it is a string. */
const ENVELOPE = { requestId: Type.Optional(Type.Unknown()) };
/** The client's state. Ignored: the `sync` in reply is complete. */
const Hint = Type.Optional(Type.Unknown());

const Action = Type.Object({
  type: Type.Literal("send"),
  actionType: Type.String({ minLength: 1 }),
  payload: Type.Optional(Type.Unknown()),
  requestId: Type.String(),
});
const actionParser = createParser(Action, { member: 'a member of "send"' });

const failure = (code: RoomErrorCode, message: string): Failure<RoomErrorCode> => ({ code, message });
const NOT_JOINED = failure("NOT_JOINED", "The first message after auth must be join");

/** Returns the protocol of room connections. */
export function createProtocol(deps: {
  service: Pick<RoomsService, "join" | "mayJoin" | "follow">;
  /** Authenticated connections. */
  visitors: Set<Visitor>;
}): Protocol<Visitor, RoomErrorCode> {
  const { service, visitors } = deps;
  return {
    name: "room",
    messages: createMessages(service),
    envelope: ENVELOPE,
    // A player is a user.
    allowsAnonymous: false,
    errorText: ({ code, message }, about) =>
      errorMessage(code === "MESSAGE_TOO_LARGE" ? "INVALID_MESSAGE" : code, message, about?.["requestId"]),
    authenticated(connection, principal) {
      connection.state.authenticated(connection);
      visitors.add(connection.state);
      connection.sendText(authSuccess(userIdOf(principal), connection.id));
    },
    refreshed(connection, principal) {
      connection.state.room?.userChanged();
      connection.sendText(authRefreshed(userIdOf(principal), connection.id));
      return null;
    },
    // Handlers read the user from the connection when they run.
    userChanged({ state }) {
      state.room?.userChanged();
      return null;
    },
    pinged: (connection) => connection.sendText(PONG),
    closed({ state }, code) {
      visitors.delete(state);
      state.closed(code);
      return null;
    },
  };
}

function createMessages(
  service: Pick<RoomsService, "join" | "mayJoin" | "follow">,
): readonly MessageType<Visitor, RoomErrorCode>[] {
  const declare = declareMessages<Visitor, RoomErrorCode>(ENVELOPE);
  const hints = { lastSharedState: Hint, lastSharedVersion: Hint, lastPlayerState: Hint, lastPlayerVersion: Hint };
  const members = { ...hints, players: Type.Optional(Type.Boolean()) };
  return [
    declare("join", members, (connection, { players = false }) => {
      connection.state.wantsPlayers = players;
      return join(service, connection);
    }),
    {
      type: "send",
      // A missing or mistyped member is INVALID_ACTION, and only once the connection has joined.
      problemOf(message) {
        const problems = actionParser.problemsOf(message);
        if (problems === null) return null;
        const unknown = Object.values(problems).find(({ code }) => code === "unknown_field");
        return unknown === undefined ? null : unknown.message.slice(0, PROBLEM_SHOWN_LENGTH);
      },
      handle: ({ state }, message: JsonObject, _, chars) => act(state, message, chars),
    },
  ];
}

/** Returns the principal as a user. The protocol accepts no others. */
function userOf(principal: Visiting): SignedIn {
  if (principal.kind === "user") return principal;
  throw new Error("a connection to a room has a user");
}

const userIdOf = (principal: Visiting): string => userOf(principal).auth.id;

async function join(
  service: Pick<RoomsService, "join" | "mayJoin" | "follow">,
  connection: VisitorConnection,
): Promise<Failure<RoomErrorCode> | null> {
  const visitor = connection.state;
  if (visitor.room !== null) {
    visitor.room.resync(visitor);
    return null;
  }
  visitor.joining();
  const { room, outcome, right, auth } = await service.join(visitor.address, visitor);
  if (outcome.kind !== "joined" || room === null) {
    visitor.refused();
    if (outcome.kind === "full") return failure("ROOM_FULL", `The room has its ${outcome.maxPlayers} players`);
    return failure("JOIN_DENIED", outcome.kind === "denied" ? outcome.message : "Access denied");
  }
  visitor.joined(room, { right, auth }, (user, watch) => service.mayJoin(visitor.address, user, watch));
  service.follow(right);
  connection.forgetMessages();
  // The connection closed during the join, before it had a room.
  if (connection.closeCode !== null) visitor.closed(connection.closeCode);
  return null;
}

function act(visitor: Visitor, message: JsonObject, chars: number): Failure<RoomErrorCode> | null {
  const { room, address } = visitor;
  if (room === null) return NOT_JOINED;
  const { actionType, payload = {}, requestId } = message;
  if (typeof actionType !== "string" || actionType === "" || typeof requestId !== "string") {
    const [problem] = Object.values(actionParser.problemsOf(message) ?? {});
    return failure("INVALID_ACTION", problem?.message ?? "The action is not valid");
  }
  if (!Object.hasOwn(address.namespace.config.actions ?? {}, actionType)) {
    return failure("NO_HANDLER", `There is no action "${actionType}"`);
  }
  // A value takes a character and a comma at least, so a shorter message cannot exceed the bound.
  if (chars > 2 * MESSAGE_VALUES_MAX && !isWithinValues(payload, MESSAGE_VALUES_MAX)) {
    return failure("INVALID_MESSAGE", `The payload of an action must hold at most ${MESSAGE_VALUES_MAX} values`);
  }
  room.act(visitor, { type: actionType, payload, requestId, chars });
  return null;
}

/** Whether a value holds at most `valuesMax` values, itself included. Stops counting at that number. */
function isWithinValues(value: JsonValue, valuesMax: number): boolean {
  let left = valuesMax;
  const waiting: JsonValue[] = [value];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (--left < 0) return false;
    if (typeof next !== "object" || next === null) continue;
    const members = Array.isArray(next) ? next : Object.values(next);
    if (members.length > left) return false;
    for (const member of members) waiting.push(member);
  }
  return true;
}
