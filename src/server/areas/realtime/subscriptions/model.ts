import type { Millis } from "../../../../kernel/clock.ts";
import type { ReadAccess, RecordFilter } from "../../../access/table-door.ts";
import type { Connection, Visiting } from "../../../sockets/connection.ts";
import type { StandingRight } from "../../../sockets/standing-rights.ts";
import type { Audience } from "../changes/audience.ts";
import type { TableLog } from "../changes/change-log.ts";
import type { Channel } from "../channel.ts";
import type { Tracked } from "../presence/presence.ts";
import type { SeenView } from "./views.ts";

// The types that refer to one another: a connection has subscriptions, a subscription has a feed, a feed has the users whose
// rule is evaluated again with its changes.

/** What realtime keeps for a connection. */
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

/** Who the connection is of now: another role may come while a rule is awaited. */
export function principalOf({ principal }: RealtimeConnection): Visiting {
  if (principal === null) throw new Error("an unauthenticated connection has no rights");
  return principal;
}

export type TableChannel = Channel & { kind: "table" };

export type Subscription = TableSubscription | TopicSubscription;

/** How a client names a subscription: by an id of its own, else (null) by its channel. */
export interface Naming {
  readonly name: string;
  readonly id: string | null;
}

/** Equal for the same subscription of a connection. A channel has one without an id, and any number with ids. */
export const keyOf = ({ name, id }: Naming): string => (id === null ? `channel ${name}` : `id ${id}`);

/** A right that a rule has given to whoever the connection was of then. */
interface Given {
  /** `connection.identity` of that time. */
  identity: number;
}

/** Whether the user has changed since the right was given: until the rule is asked again, nothing is sent by it. [RT6] */
export const isOutdated = ({ identity }: RealtimeConnection, given: Given): boolean => given.identity !== identity;

export interface TopicSubscription extends Naming, Given {
  readonly kind: "presence" | "broadcast";
}

/** The filters of a subscription. */
export interface Filters {
  /** What the client sent, as the JSON of `[filters, orFilters]`. */
  text: string;
  /** null: no filters in force. */
  filter: RecordFilter | null;
}

export interface TableSubscription extends Naming, Given {
  readonly kind: "table";
  readonly channel: TableChannel;
  filters: Filters;
  access: ReadAccess;
  /** Equal for rights that show the same records. */
  viewKey: string;
  /** null: the read rule is written in the config as a constant, and shows the same to everybody. */
  seen: SeenView | null;
  /** null: its rule is not asked again before the next `subscribe`. */
  asker: Asker | null;
  feed: Feed;
  audience: Audience;
  isCatchingUp: boolean;
  /** Settled when it has caught up, or has ended; null: nobody waits for that. */
  caughtUp: PromiseWithResolvers<void> | null;
  /** Its client has missed changes, or may have loaded records of another view, and has not been told. */
  hasMissedView: boolean;
  /** Settled when it is no longer outdated, or has ended; null: nobody waits for that. */
  renewed: PromiseWithResolvers<void> | null;
  isEnded: boolean;
}

/** A table with subscriptions, or whose last one ended less than ten minutes ago. */
export interface Feed {
  readonly log: TableLog;
  /** By key. Those of single records are apart, so that a change is evaluated for the audiences that it concerns. */
  readonly audiences: Map<string, Audience>;
  readonly documents: Map<string, Map<string, Audience>>;
  holders: number;
}

/**
 * Subscriptions to a table, of users that are equal to its rule: it is evaluated again once for all of them. At most
 * ASKER_MEMBERS_MAX; further ones have another asker.
 */
export interface Asker {
  /** What its rule sees of the user, as JSON, and the channel's record where the rule looks at records. */
  readonly auth: string;
  readonly principal: Visiting;
  readonly channel: TableChannel;
  /** What it looked at. */
  right: StandingRight;
  /** The last answer: an equal filter is not compiled again. */
  access: ReadAccess;
  /** Another number for each view that equal answers do not show to be the same. */
  serial: number;
  /** Its records may have been others between two equal answers, and its subscriptions have not been told. */
  hasMissedView: boolean;
  /** `right.commitCount` when the latest question began. */
  askedAt: number;
  /** When `serial` was given. */
  viewedAt: Millis;
  /** Ends the wait for the next view; null: none is due. */
  cancelView: (() => void) | null;
  readonly members: Map<TableSubscription, RealtimeConnection>;
}
