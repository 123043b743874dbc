import type { Connection, Visiting } from "../../../sockets/connection.ts";
import type { StandingRight } from "../../../sockets/standing-rights.ts";
import type { Channel } from "../channel.ts";
import type { Tracked } from "../topics/presence.ts";

/** Realtime's state of a connection. */
export interface RealtimeState {
  /** The connection's own channel, on which track, untrack and broadcast act by default. */
  readonly defaultChannel: string | null;
  /** Subscriptions by `keyOf`. */
  readonly subscriptions: Map<string, Subscription>;
  /** Presence entries; null before the first `track`. */
  tracked: Tracked | null;
  /** Rights to presence and broadcast channels whose rules have looked something up, by kind and name. */
  readonly topicRights: Map<string, StandingRight>;
}

export type RealtimeConnection = Connection<RealtimeState>;

export type TopicChannel = Exclude<Channel, { kind: "table" }>;

/** Name of a subscription: the client's id, or the channel when `id` is null. */
export interface Naming {
  readonly name: string;
  readonly id: string | null;
}

/** A subscription to a channel of any kind. */
export interface Subscription extends Naming {
  readonly kind: Channel["kind"];
  readonly connection: RealtimeConnection;
  /** Whether the user has changed since the right was granted: nothing is delivered until the rule is evaluated again. [RT6] */
  readonly isOutdated: boolean;
  end(): void;
}

/** Returns the key of a subscription within its connection. A channel has one without an id, and any number with ids. */
export const keyOf = ({ name, id }: Naming): string => (id === null ? `channel ${name}` : `id ${id}`);

/** Returns the current principal of a connection, which may change while a rule is awaited. */
export function principalOf({ principal }: RealtimeConnection): Visiting {
  if (principal === null) throw new Error("an unauthenticated connection has no rights");
  return principal;
}

/** Returns the user's id; null for a connection without a user. */
export const userIdOf = (principal: Visiting): string | null => (principal.kind === "user" ? principal.auth.id : null);
