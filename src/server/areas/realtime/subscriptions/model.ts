import type { Connection, Visiting } from "../../../sockets/connection.ts";
import type { StandingRight } from "../../../sockets/standing-rights.ts";
import type { Channel } from "../channel.ts";
import type { Tracked } from "../topics/presence.ts";

/** The state that realtime keeps for a connection. */
export interface RealtimeState {
  /** The connection's own channel: what track, untrack and broadcast act on. */
  readonly defaultChannel: string | null;
  /** By `keyOf`. */
  readonly subscriptions: Map<string, Subscription>;
  /** null: it has not been tracked yet. */
  tracked: Tracked | null;
  /** Rights to presence and broadcast channels whose rules have looked something up, by kind and name. */
  readonly topicRights: Map<string, StandingRight>;
}

export type RealtimeConnection = Connection<RealtimeState>;

export type TopicChannel = Exclude<Channel, { kind: "table" }>;

/** The way in which a client names a subscription: by an id of its own, else (null) by its channel. */
export interface Naming {
  readonly name: string;
  readonly id: string | null;
}

/** A subscription to a channel of any kind. */
export interface Subscription extends Naming {
  readonly kind: Channel["kind"];
  readonly connection: RealtimeConnection;
  /** The user has changed since the right was given: until the rule is asked again, nothing is sent by it. [RT6] */
  readonly isOutdated: boolean;
  end(): void;
}

/** Returns a key that is equal for the same subscription of a connection. A channel has one without an id, and any number with ids. */
export const keyOf = ({ name, id }: Naming): string => (id === null ? `channel ${name}` : `id ${id}`);

/** Returns the present user of a connection: another one may come while a rule is awaited. */
export function principalOf({ principal }: RealtimeConnection): Visiting {
  if (principal === null) throw new Error("an unauthenticated connection has no rights");
  return principal;
}

/** Returns null where the connection has no user. */
export const userIdOf = (principal: Visiting): string | null => (principal.kind === "user" ? principal.auth.id : null);
