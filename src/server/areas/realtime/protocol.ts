import type { JsonObject } from "../../../kernel/json/json.ts";
import { chain } from "../../../kernel/maybe-promise.ts";
import { VERSION } from "../../../kernel/version.ts";
import { CLOSE } from "../../sockets/limits.ts";
import type { Protocol } from "../../sockets/protocol.ts";
import { CHANNEL_LENGTH_MAX, REQUEST_ID_LENGTH_MAX, SUBSCRIPTION_ID_LENGTH_MAX } from "./limits.ts";
import { createMessages, type MessageDeps } from "./client-messages.ts";
import type { RealtimeConnection, RealtimeState } from "./subscriptions/model.ts";
import { createReview } from "./review.ts";
import { userIdOf } from "./revoked.ts";
import type { ErrorCode, ServerMessage } from "./messages.ts";

/** Realtime's protocol. */
export function createProtocol(deps: MessageDeps): Protocol<RealtimeState, ErrorCode> {
  const { subscribing, presence } = deps;
  const review = createReview(deps);
  const send = (connection: RealtimeConnection, message: ServerMessage): void => connection.send(message);

  return {
    name: "realtime",
    messages: createMessages(deps),
    envelope: {},
    allowsAnonymous: true,
    errorText({ code, message }, about, { state }) {
      if (code === "AUTH_FAILED") return JSON.stringify({ type: "auth_error", message });
      const channel = about === null ? undefined : channelOf(about, state.defaultChannel);
      const id = idOf(about?.["id"], SUBSCRIPTION_ID_LENGTH_MAX);
      const requestId = idOf(about?.["requestId"], REQUEST_ID_LENGTH_MAX);
      return JSON.stringify({ type: "error", code, message, channel, id, requestId });
    },
    authenticated: (connection, principal) =>
      send(connection, { type: "auth_success", userId: userIdOf(principal), version: VERSION }),
    *refreshed(connection, principal) {
      return chain(yield* review(connection), (revoked) => send(connection, revoked.message(userIdOf(principal))));
    },
    *userChanged(connection, principal) {
      return chain(yield* review(connection), (revoked) => {
        if (!revoked.isEmpty) send(connection, revoked.message(userIdOf(principal)));
      });
    },
    pinged(connection) {
      if (connection.state.tracked !== null) presence.touch(connection.state.tracked);
      send(connection, { type: "pong" });
    },
    *closed(connection, code) {
      const { subscriptions, tracked } = connection.state;
      // The entries of a lost connection stay until their time to live is over. [RT31]
      if (code !== CLOSE.lost && tracked !== null) {
        for (const name of [...tracked.channels]) {
          presence.untrack(tracked, name, "disconnect");
          yield;
        }
      }
      for (const subscription of [...subscriptions.values()]) {
        subscribing.end(connection, subscription);
        yield;
      }
    },
  };
}

/** An id that a message has, for the error that answers it; undefined: none. */
const idOf = (id: unknown, lengthMax: number): string | undefined =>
  typeof id === "string" && id.length <= lengthMax ? id : undefined;

/** The channel that a message is about, for the error that answers it; undefined: none. */
function channelOf({ type, channel }: JsonObject, ownChannel: string | null): string | undefined {
  const actsOnOwn = type === "track" || type === "untrack" || type === "broadcast";
  const name = channel ?? (actsOnOwn ? ownChannel : null);
  return typeof name === "string" && name.length <= CHANNEL_LENGTH_MAX ? name : undefined;
}
