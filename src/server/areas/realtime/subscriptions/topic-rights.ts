import { chain, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import type { LookupWatch } from "../../../access/lookups/lookups.ts";
import type { Visiting } from "../../../sockets/connection.ts";
import type { StandingRight, StandingRights } from "../../../sockets/standing-rights.ts";
import { Revoked } from "../messages.ts";
import { LISTENING, type Rights } from "../rights.ts";
import type { Broadcasts } from "../topics/broadcasts.ts";
import type { Presence } from "../topics/presence.ts";
import { principalOf, type RealtimeConnection, type TopicChannel, userIdOf } from "./model.ts";

/** Retries of a rule for one subscription whose data changes while it is awaited. */
const ASKED_AGAIN_MAX = 20;

/** Rights to subscribe to presence and broadcast channels, and to be tracked on them. [RT226] */
export class TopicRights {
  readonly #deps: {
    rights: Pick<Rights, "presence" | "broadcast">;
    standing: StandingRights;
    presence: Presence;
    broadcasts: Broadcasts;
  };

  constructor(deps: {
    rights: Pick<Rights, "presence" | "broadcast">;
    standing: StandingRights;
    presence: Presence;
    broadcasts: Broadcasts;
  }) {
    this.#deps = deps;
  }

  /**
   * Evaluates the rule for the connection's user, and again when its lookups change, until `follow` finds the right unused.
   * `timesLeft`: retries left for a rule whose data changes whenever it is awaited; after these, `follow` evaluates it again.
   */
  ask(
    connection: RealtimeConnection,
    channel: TopicChannel,
    timesLeft: number = ASKED_AGAIN_MAX,
  ): MaybePromise<boolean> {
    const right = this.#deps.standing.begin();
    const principal = principalOf(connection);
    return chain(this.#mayUse(principal, channel, right.watch), (isAllowed) => {
      // The answer is about the previous user.
      if (connection.principal !== principal) {
        right.end();
        return this.ask(connection, channel, timesLeft);
      }
      if (isAllowed && (!right.isStale || timesLeft === 0)) {
        this.#keep(connection, channel, right);
        return true;
      }
      right.end();
      // An outdated answer must deliver nothing.
      return isAllowed && this.ask(connection, channel, timesLeft - 1);
    });
  }

  /** Follows the use of a right. Call it when the use has begun, was not begun after all, or has ended. */
  follow(connection: RealtimeConnection, channel: TopicChannel): void {
    const own = connection.state.topicRights;
    const right = own.get(keyOf(channel));
    if (right === undefined) return;
    if (isUsed(connection, channel)) {
      // For data that changed while the rule was awaited.
      void this.#deps.standing.settle(right);
      return;
    }
    own.delete(keyOf(channel));
    right.end();
  }

  /** Holds the channel's messages until the returned function is called. */
  hold({ kind, name }: TopicChannel): () => void {
    return kind === "presence" ? this.#deps.presence.hold(name) : this.#deps.broadcasts.hold(name);
  }

  #mayUse(principal: Visiting, { kind, name }: TopicChannel, watch: LookupWatch): MaybePromise<boolean> {
    const { rights } = this.#deps;
    return kind === "presence"
      ? rights.presence(principal, name, watch)
      : rights.broadcast(principal, name, LISTENING, watch);
  }

  #keep(connection: RealtimeConnection, channel: TopicChannel, right: StandingRight): void {
    const own = connection.state.topicRights;
    const key = keyOf(channel);
    own.get(key)?.end();
    if (!right.hasLooked || connection.isClosed) {
      own.delete(key);
      right.end();
      return;
    }
    own.set(key, right);
    right.owner = {
      ask: (watch) => {
        const { principal } = connection;
        if (principal === null || !isUsed(connection, channel)) {
          // The use has not begun: `follow` evaluates then.
          right.touch();
          return null;
        }
        return chain(this.#mayUse(principal, channel, watch), (isAllowed) =>
          isAllowed ? null : () => this.#revoke(connection, channel),
        );
      },
      touched() {},
      hold: () => this.hold(channel),
    };
  }

  /** Ends what the rule no longer allows, and tells the client. */
  #revoke(connection: RealtimeConnection, { kind, name }: TopicChannel): void {
    const revoked = new Revoked().add({ name, id: null });
    for (const subscription of [...connection.state.subscriptions.values()]) {
      if (subscription.kind !== kind || subscription.name !== name) continue;
      subscription.end();
      revoked.add(subscription);
    }
    const { principal, state } = connection;
    if (kind === "presence" && state.tracked !== null) this.#deps.presence.untrack(state.tracked, name, "denied");
    if (principal !== null) connection.send(revoked.message(userIdOf(principal)));
  }
}

const keyOf = ({ kind, name }: TopicChannel): string => `${kind} ${name}`;

/** Whether the connection is subscribed to the channel, or tracked on it. */
function isUsed({ state }: RealtimeConnection, { kind, name }: TopicChannel): boolean {
  if (kind === "presence" && state.tracked?.channels.has(name) === true) return true;
  return state.subscriptions.values().some((other) => other.kind === kind && other.name === name);
}
