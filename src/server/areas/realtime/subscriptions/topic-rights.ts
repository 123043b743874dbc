import { chain, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import type { LookupWatch } from "../../../access/lookups/lookups.ts";
import type { Visiting } from "../../../sockets/connection.ts";
import type { StandingRight } from "../../../sockets/standing-rights.ts";
import type { StandingRights } from "../../../sockets/standing-rights.ts";
import { ASKED_AGAIN_MAX } from "../limits.ts";
import { principalOf, type RealtimeConnection, type TopicSubscription } from "./model.ts";
import { LISTENING, type Rights } from "../rights.ts";

type TopicChannel = Pick<TopicSubscription, "kind" | "name">;

/** Rights to presence and broadcast channels: to subscribe, and to be tracked. [RT226] */
export interface TopicRights {
  /** Asks the rule for the connection's user. It is asked again when what it looked at changes, until `release`. */
  ask(connection: RealtimeConnection, channel: TopicChannel): MaybePromise<boolean>;
  /** A use of the right has begun, or was not begun after all, or has ended. */
  follow(connection: RealtimeConnection, channel: TopicChannel): void;
  /** Nothing is sent on the channel until the function returned is called. */
  hold(channel: TopicChannel): () => void;
}

export function createTopicRights(deps: {
  rights: Pick<Rights, "presence" | "broadcast">;
  standing: StandingRights;
  /** The rule denies. */
  revoke(connection: RealtimeConnection, channel: TopicChannel): void;
  /** Nothing is sent on the channel until the function returned is called. */
  hold(channel: TopicChannel): () => void;
}): TopicRights {
  const { rights, standing } = deps;
  const mayUse = (principal: Visiting, { kind, name }: TopicChannel, watch: LookupWatch): MaybePromise<boolean> =>
    kind === "presence" ? rights.presence(principal, name, watch) : rights.broadcast(principal, name, LISTENING, watch);

  const keep = (connection: RealtimeConnection, channel: TopicChannel, right: StandingRight): void => {
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
      ask(watch) {
        const { principal } = connection;
        if (principal === null || !isUsed(connection, channel)) {
          // Its use has not begun: `follow` asks then.
          right.touch();
          return null;
        }
        return chain(mayUse(principal, channel, watch), (isAllowed) =>
          isAllowed ? null : () => deps.revoke(connection, channel),
        );
      },
      touched() {},
      hold: () => deps.hold(channel),
    };
  };

  /** `timesLeft`: for a rule whose data changes whenever it is awaited. Such a right is asked again by `follow`. */
  const ask = (
    connection: RealtimeConnection,
    channel: TopicChannel,
    timesLeft = ASKED_AGAIN_MAX,
  ): MaybePromise<boolean> => {
    const right = standing.begin();
    const principal = principalOf(connection);
    return chain(mayUse(principal, channel, right.watch), (isAllowed) => {
      // Its answer is about who the user was.
      if (connection.principal !== principal) {
        right.end();
        return ask(connection, channel, timesLeft);
      }
      if (isAllowed && (!right.isStale || timesLeft === 0)) {
        keep(connection, channel, right);
        return true;
      }
      right.end();
      // Nothing is sent by an answer of before.
      return isAllowed && ask(connection, channel, timesLeft - 1);
    });
  };

  return {
    ask: (connection, channel) => ask(connection, channel),
    follow(connection, channel) {
      const own = connection.state.topicRights;
      const right = own.get(keyOf(channel));
      if (right === undefined) return;
      if (isUsed(connection, channel)) {
        // Where data changed while the rule was awaited.
        void standing.settle(right);
        return;
      }
      own.delete(keyOf(channel));
      right.end();
    },
    hold: deps.hold,
  };
}

const keyOf = ({ kind, name }: TopicChannel): string => `${kind} ${name}`;

/** Whether the connection is subscribed to the channel, or tracked on it. */
function isUsed({ state }: RealtimeConnection, { kind, name }: TopicChannel): boolean {
  if (kind === "presence" && state.tracked?.channels.has(name) === true) return true;
  return state.subscriptions.values().some((other) => other.kind === kind && other.name === name);
}
