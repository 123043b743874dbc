import type { JsonObject } from "../../../kernel/json/json.ts";
import { chain, isPromise, type MaybePromise } from "../../../kernel/maybe-promise.ts";
import { VERSION } from "../../../kernel/version.ts";
import { CLOSE } from "../../sockets/limits.ts";
import type { Protocol } from "../../sockets/protocol.ts";
import { createMessages, type MessageDeps } from "./client-messages.ts";
import { CHANNEL_LENGTH_MAX, REQUEST_ID_LENGTH_MAX, SUBSCRIPTION_ID_LENGTH_MAX } from "./limits.ts";
import { type ErrorCode, Revoked, type ServerMessage } from "./messages.ts";
import { type Naming, type RealtimeConnection, type RealtimeState, userIdOf } from "./subscriptions/model.ts";

/** Returns the protocol of realtime connections. */
export function createProtocol(deps: MessageDeps): Protocol<RealtimeState, ErrorCode> {
  const { presence } = deps;
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
      return chain(yield* review(deps, connection), (revoked) =>
        send(connection, revoked.message(userIdOf(principal))),
      );
    },
    *userChanged(connection, principal) {
      return chain(yield* review(deps, connection), (revoked) => {
        if (!revoked.isEmpty) send(connection, revoked.message(userIdOf(principal)));
      });
    },
    pinged(connection) {
      if (connection.state.tracked !== null) presence.touch(connection.state.tracked);
      send(connection, { type: "pong" });
    },
    *closed({ state: { subscriptions, tracked } }, code) {
      // The entries of a lost connection stay until their time to live is over. [RT31]
      if (code !== CLOSE.lost && tracked !== null) {
        for (const name of [...tracked.channels]) {
          presence.untrack(tracked, name, "disconnect");
          yield;
        }
      }
      for (const subscription of [...subscriptions.values()]) {
        subscription.end();
        yield;
      }
    },
  };
}

/**
 * Re-evaluates every right that was granted to the connection's previous user, one per step; ends and returns those that are no
 * longer allowed. Until then, a right delivers nothing. [RT6]
 */
function* review(deps: MessageDeps, connection: RealtimeConnection): Generator<void, MaybePromise<Revoked>> {
  const { subscriptions, tracked } = connection.state;
  const revoked = new Revoked();
  const awaited: Promise<void>[] = [];
  const note = (denied: Naming, reviewed: MaybePromise<boolean>): void => {
    const noted = chain(reviewed, (isAllowed) => {
      if (!isAllowed) revoked.add(denied);
    });
    if (!isPromise(noted)) return;
    awaited.push(noted);
    // Prevents an unhandled rejection: it may fail before all are awaited.
    noted.catch(() => {});
  };
  for (const [key, subscription] of [...subscriptions]) {
    // Since the previous step, it may have ended, and the user may have changed again.
    if (subscriptions.get(key) !== subscription || !subscription.isOutdated) continue;
    note(subscription, deps.subscribing.review(subscription));
    yield;
  }
  for (const name of [...(tracked?.channels ?? [])]) {
    note({ name, id: null }, reviewEntry(deps, connection, name));
    yield;
  }
  return awaited.length === 0 ? revoked : Promise.all(awaited).then(() => revoked);
}

/** Re-evaluates the right to be tracked on the channel. false: it is denied, and the entry has ended. */
function reviewEntry(
  { topicRights, presence }: MessageDeps,
  connection: RealtimeConnection,
  name: string,
): MaybePromise<boolean> {
  const channel = { kind: "presence" as const, name };
  return chain(topicRights.ask(connection, channel), (isAllowed) => {
    const { tracked } = connection.state;
    const isDenied = !isAllowed && tracked?.channels.has(name) === true;
    if (isDenied) presence.untrack(tracked, name, "denied");
    topicRights.follow(connection, channel);
    return !isDenied;
  });
}

/** Returns the id of a message, for the error that answers it; undefined when it has none. */
const idOf = (id: unknown, lengthMax: number): string | undefined =>
  typeof id === "string" && id.length <= lengthMax ? id : undefined;

/** Returns the channel that a message concerns, for the error that answers it; undefined when there is none. */
function channelOf({ type, channel }: JsonObject, ownChannel: string | null): string | undefined {
  const actsOnOwn = type === "track" || type === "untrack" || type === "broadcast";
  const name = channel ?? (actsOnOwn ? ownChannel : null);
  return typeof name === "string" && name.length <= CHANNEL_LENGTH_MAX ? name : undefined;
}
