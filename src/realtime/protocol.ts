import type { JsonObject } from "../kernel/json/json.ts";
import { CLOSE } from "../sockets/close-codes.ts";
import type { SignedIn } from "../sockets/connection.ts";
import type { Protocol } from "../sockets/protocol.ts";
import { CHANNEL_LENGTH_MAX } from "./limits.ts";
import { createMessages, type MessageDeps } from "./messages.ts";
import type { RealtimeConnection, RealtimeState } from "./model.ts";
import type { ErrorCode, ServerMessage } from "./server-messages.ts";

/** Realtime's protocol. */
export function createProtocol(deps: MessageDeps): Protocol<RealtimeState, ErrorCode> {
  const { rights, subscribing, presence } = deps;

  /** Evaluates every right again; ends, and returns, the channels that are no longer allowed. */
  const refresh = async (connection: RealtimeConnection, principal: SignedIn): Promise<string[]> => {
    const { subscriptions, tracked } = connection.state;
    const revoked: string[] = [];
    for (const [name, subscription] of [...subscriptions]) {
      if (await subscribing.isStillAllowed(connection, principal, name, subscription)) continue;
      subscribing.end(connection, name);
      revoked.push(name);
    }
    for (const name of [...(tracked?.channels ?? [])]) {
      if (tracked === null || (await rights.presence(principal, name))) continue;
      presence.untrack(tracked, name, "disconnect");
      if (!revoked.includes(name)) revoked.push(name);
    }
    return revoked;
  };
  const send = (connection: RealtimeConnection, message: ServerMessage): void => connection.send(message);
  const userIdOf = (principal: SignedIn): string => principal.auth.id;

  return {
    name: "realtime",
    messages: createMessages(deps),
    envelope: {},
    errorText({ code, message }, about, { state }) {
      if (code === "AUTH_FAILED") return JSON.stringify({ type: "auth_error", message });
      const channel = about === null ? undefined : channelOf(about, state.defaultChannel);
      return JSON.stringify({ type: "error", code, message, channel });
    },
    authenticated: (connection, principal) => send(connection, { type: "auth_success", userId: userIdOf(principal) }),
    async refreshed(connection, principal) {
      const revokedChannels = await refresh(connection, principal);
      send(connection, { type: "auth_refreshed", userId: userIdOf(principal), revokedChannels });
    },
    async userChanged(connection, principal) {
      const revokedChannels = await refresh(connection, principal);
      if (revokedChannels.length === 0) return;
      send(connection, { type: "auth_refreshed", userId: userIdOf(principal), revokedChannels });
    },
    pinged(connection) {
      if (connection.state.tracked !== null) presence.touch(connection.state.tracked);
      send(connection, { type: "pong" });
    },
    closed(connection, code) {
      const { subscriptions, tracked } = connection.state;
      for (const name of [...subscriptions.keys()]) subscribing.end(connection, name);
      // The entries of a lost connection stay until their time to live is over. [RT31]
      if (code !== CLOSE.lost && tracked !== null) presence.untrack(tracked, null, "disconnect");
    },
  };
}

/** The channel that a message is about, for the error that answers it; undefined: none. */
function channelOf({ type, channel }: JsonObject, ownChannel: string | null): string | undefined {
  const actsOnOwn = type === "track" || type === "untrack" || type === "broadcast";
  const name = channel ?? (actsOnOwn ? ownChannel : null);
  return typeof name === "string" && name.length <= CHANNEL_LENGTH_MAX ? name : undefined;
}
