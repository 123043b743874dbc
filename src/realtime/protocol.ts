import type { JsonObject } from "../kernel/json/json.ts";
import { VERSION } from "../kernel/version.ts";
import { CLOSE } from "../sockets/close-codes.ts";
import type { Protocol } from "../sockets/protocol.ts";
import { CHANNEL_LENGTH_MAX, REQUEST_ID_LENGTH_MAX, SUBSCRIPTION_ID_LENGTH_MAX } from "./limits.ts";
import { createMessages, type MessageDeps } from "./messages.ts";
import type { RealtimeConnection, RealtimeState, Subscription } from "./model.ts";
import { Revoked, userIdOf } from "./revoked.ts";
import type { ErrorCode, ServerMessage } from "./server-messages.ts";

/** Realtime's protocol. */
export function createProtocol(deps: MessageDeps): Protocol<RealtimeState, ErrorCode> {
  const { topicRights, subscribing, presence } = deps;

  /** Evaluates every right again, at once: ends, and returns, what is no longer allowed. */
  const refresh = async (connection: RealtimeConnection): Promise<Revoked> => {
    const { subscriptions, tracked } = connection.state;
    const revoked = new Revoked();
    const review = async (subscription: Subscription): Promise<void> => {
      if (await subscribing.isStillAllowed(connection, subscription)) return;
      subscribing.end(connection, subscription);
      revoked.add(subscription);
    };
    await Promise.all(Array.from(subscriptions.values(), review));
    const reviewEntry = async (name: string): Promise<void> => {
      const channel = { kind: "presence" as const, name };
      const isAllowed = await topicRights.ask(connection, channel);
      topicRights.follow(connection, channel);
      if (tracked === null || isAllowed) return;
      presence.untrack(tracked, name, "denied");
      revoked.add({ name, id: null });
    };
    await Promise.all(Array.from(tracked?.channels ?? [], reviewEntry));
    return revoked;
  };
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
    async refreshed(connection, principal) {
      const revoked = await refresh(connection);
      send(connection, revoked.message(userIdOf(principal)));
    },
    async userChanged(connection, principal) {
      // Tables pause by themselves, each for its own rule.
      const release = topicRights.hold(connection);
      const revoked = await refresh(connection).finally(release);
      if (!revoked.isEmpty) send(connection, revoked.message(userIdOf(principal)));
    },
    pinged(connection) {
      if (connection.state.tracked !== null) presence.touch(connection.state.tracked);
      send(connection, { type: "pong" });
    },
    closed(connection, code) {
      const { subscriptions, tracked } = connection.state;
      for (const subscription of [...subscriptions.values()]) subscribing.end(connection, subscription);
      // The entries of a lost connection stay until their time to live is over. [RT31]
      if (code !== CLOSE.lost && tracked !== null) presence.untrack(tracked, null, "disconnect");
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
