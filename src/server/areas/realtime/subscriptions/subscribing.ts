import { chain, isPromise, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import type { Scheduler } from "../../../../kernel/time/scheduler.ts";
import type { ReadAccess, TableDoor } from "../../../access/table-door.ts";
import { type ChannelFilters, parseChannel, type TableChannel } from "../channel.ts";
import { RELATIONS_PER_CONNECTION_MAX, SUBSCRIPTIONS_PER_CONNECTION_MAX } from "../limits.ts";
import { denied, type Failure, failure, notLive, unknownChannel } from "../messages.ts";
import type { Asked } from "./askers.ts";
import {
  type Filters,
  judgedByRight,
  mergeFilters,
  parseFilters,
  relatedFilters,
  type SentFilters,
} from "./filters.ts";
import {
  keyOf,
  type Naming,
  principalOf,
  type RealtimeConnection,
  type Subscription,
  type TopicChannel,
} from "./model.ts";
import { TableSubscription, type TableSubscriptionDeps } from "./table-subscription.ts";
import { TopicSubscription, type TopicSubscriptionDeps } from "./topic-subscription.ts";

/** Name of a subscription in a message. */
interface SentName {
  channel?: string | null | undefined;
  id?: string | null | undefined;
}

interface FilterUpdate extends SentFilters, SentName {}

interface SubscribeRequest extends SentFilters, SentName {
  channel: string;
  /** The `seq` of the last event that the client has; null or absent: the subscription starts with the next change. */
  since?: number | null;
}

interface SubscribingDeps extends TableSubscriptionDeps, TopicSubscriptionDeps {
  tables: TableDoor;
  /** Shared turns with the steps that follow the ends of connections. */
  followUps: Pick<Scheduler, "soon">;
}

/** Manages subscriptions to channels of every kind. Functions with a `Failure` return null on success. */
export class Subscribing {
  readonly #deps: SubscribingDeps;

  constructor(deps: SubscribingDeps) {
    this.#deps = deps;
  }

  subscribe(connection: RealtimeConnection, request: SubscribeRequest): MaybePromise<Failure | null> {
    const channel = parseChannel(request.channel, this.#deps.tables);
    if (channel === null) return unknownChannel(request.channel);
    const { id = null } = request;
    const own = connection.state.subscriptions;
    if (!own.has(keyOf({ name: channel.name, id })) && own.size >= SUBSCRIPTIONS_PER_CONNECTION_MAX) {
      const message = `A connection has at most ${SUBSCRIPTIONS_PER_CONNECTION_MAX} subscriptions`;
      return failure("TOO_MANY_SUBSCRIPTIONS", message);
    }
    return channel.kind === "table"
      ? this.#subscribeToTable(connection, { ...request, channel, id })
      : this.#subscribeToTopic(connection, { ...request, channel, id });
  }

  /** Returns the subscription with this id, or the one to this channel without an id; null when there is none. */
  find({ state }: RealtimeConnection, { channel, id }: SentName): Subscription | null {
    return state.subscriptions.get(keyOf({ name: channel ?? "", id: id ?? null })) ?? null;
  }

  updateFilters(connection: RealtimeConnection, { channel, id, ...sent }: FilterUpdate): MaybePromise<Failure | null> {
    const refusal = failure("INVALID_FILTER", "Only channels of tables have filters");
    const subscription = this.#findTable(connection, { channel, id, refusal });
    if ("code" in subscription) return subscription;
    const known = subscription.filters;
    const merged = mergeFilters(sent, known);
    const asked = this.#channelWith(connection, subscription.channel, merged, keyOf(subscription));
    if ("problem" in asked) return failure("INVALID_FILTER", asked.problem);
    const { related } = asked;
    const filters = related ? judgedByRight(related) : parseFilters(this.#deps.tables, asked, merged, known);
    if ("problem" in filters) return failure("INVALID_FILTER", filters.problem);
    const isJudged = related !== null || (subscription.channel.related ?? null) !== null;
    if (isJudged && filters.text !== known.text)
      return this.#refilter(connection, subscription, { channel: asked, filters });
    subscription.filter(filters.text === known.text ? known : filters);
    return null;
  }

  /** Asks the right to a channel with other filters, and continues with them. */
  #refilter(
    connection: RealtimeConnection,
    subscription: TableSubscription,
    next: { channel: TableChannel; filters: Filters },
  ): MaybePromise<Failure | null> {
    let problem: string | null = null;
    const refused = (message: string): void => {
      problem = message;
    };
    return chain(this.#ask(connection, next.channel, { refused }), (asked): Failure | null => {
      if (asked === null || subscription.isEnded) {
        asked?.right.end();
        if (problem !== null) return failure("INVALID_FILTER", problem);
        return subscription.isEnded ? null : this.#refuse(connection, subscription);
      }
      subscription.refilter({ ...next, asked });
      void subscription.settle();
      return null;
    });
  }

  /** Returns the channel with filters that its right judges, if they have relations; or what is wrong with these. */
  #channelWith(
    { state }: RealtimeConnection,
    channel: TableChannel,
    sent: SentFilters,
    key: string,
  ): (TableChannel & { related: ChannelFilters | null }) | { problem: string } {
    const related = relatedFilters(sent);
    if (related === null) return { ...channel, related };
    if ("problem" in related) return related;
    let { count } = related;
    for (const [own, subscription] of state.subscriptions) {
      if (own !== key && subscription instanceof TableSubscription) count += subscription.channel.related?.count ?? 0;
    }
    const wanted = `The filters of one connection have at most ${RELATIONS_PER_CONNECTION_MAX} relations`;
    return count > RELATIONS_PER_CONNECTION_MAX ? { problem: `${wanted}, got ${count}` } : { ...channel, related };
  }

  /** Sends all changes that were committed before the call. */
  flush(connection: RealtimeConnection, named: SentName): MaybePromise<Failure | null> {
    const refusal = failure("INVALID_CHANNEL", "Only channels of tables can be flushed");
    const found = this.#findTable(connection, { ...named, refusal });
    return "code" in found ? found : found.flush().then(() => null);
  }

  /** Evaluates the rule for the current user. false: it denies, and the subscription has ended. */
  review(subscription: Subscription): MaybePromise<boolean> {
    if (subscription instanceof TopicSubscription) return subscription.review();
    if (!(subscription instanceof TableSubscription)) throw new Error("a subscription is to a table or to a topic");
    const answered = (asked: Asked | null): boolean => {
      const { isEnded } = subscription;
      if (isEnded) asked?.right.end();
      else if (asked === null) subscription.end();
      else subscription.renew(asked);
      void subscription.settle();
      return isEnded || asked !== null;
    };
    const asked = this.#ask(subscription.connection, subscription.channel, { before: subscription.access });
    if (!isPromise(asked)) return answered(asked);
    subscription.pause();
    return asked.then(answered);
  }

  #subscribeToTopic(
    connection: RealtimeConnection,
    request: SentFilters & { channel: TopicChannel; id: string | null },
  ): MaybePromise<Failure | null> {
    const { channel, id } = request;
    const { topicRights } = this.#deps;
    return chain(topicRights.ask(connection, channel), (isAllowed) => {
      if (!isAllowed) return this.#refuse(connection, { name: channel.name, id });
      const hasFilters = (request.filters ?? null) !== null || (request.orFilters ?? null) !== null;
      if (!hasFilters && !connection.isClosed) new TopicSubscription(connection, { channel, id }, this.#deps).begin();
      topicRights.follow(connection, channel);
      return hasFilters ? failure("INVALID_FILTER", "Only channels of tables have filters") : null;
    });
  }

  #subscribeToTable(
    connection: RealtimeConnection,
    request: SentFilters & { channel: TableChannel; id: string | null; since?: number | null },
  ): MaybePromise<Failure | null> {
    const { id, since = null, filters: all, orFilters: any } = request;
    const { tables, meter, followUps } = this.#deps;
    const sent = { filters: all, orFilters: any };
    const key = keyOf({ name: request.channel.name, id });
    const channel = this.#channelWith(connection, request.channel, sent, key);
    if ("problem" in channel) return failure("INVALID_FILTER", channel.problem);
    let problem: string | null = null;
    const refused = (message: string): void => {
      problem = message;
    };
    const ask = (): MaybePromise<Asked | null> => this.#ask(connection, channel, { refused });
    // A client that reconnects may resume only after the end of its earlier subscription.
    return chain(since === null ? ask() : followUps.soon(ask), (asked) => {
      const own = connection.state.subscriptions;
      if (asked === null) {
        if (problem !== null) return failure("INVALID_FILTER", problem);
        return this.#refuse(connection, { name: channel.name, id });
      }
      const sources = tables.sources(channel.address);
      if (sources?.length === 0) {
        asked.right.end();
        return notLive(channel);
      }
      const before = own.get(key);
      const known = before instanceof TableSubscription && before.name === channel.name ? before.filters : null;
      const { related } = channel;
      const filters = related === null ? parseFilters(tables, channel, sent, known) : judgedByRight(related);
      if ("problem" in filters || connection.isClosed) {
        asked.right.end();
        return "problem" in filters ? failure("INVALID_FILTER", filters.problem) : null;
      }
      before?.end();
      const subscription = new TableSubscription(
        connection,
        { channel, id, filters, asked, since, sources },
        this.#deps,
      );
      // Sending may have closed the connection as too slow.
      if (connection.isClosed) subscription.end();
      else {
        meter.begun(subscription);
        own.set(key, subscription);
      }
      void subscription.settle();
      return null;
    });
  }

  /** Refuses, and ends an earlier subscription of this name: its right is gone. */
  #refuse({ state }: RealtimeConnection, named: Naming): Failure {
    state.subscriptions.get(keyOf(named))?.end();
    return denied("SUBSCRIBE_DENIED");
  }

  /** Evaluates the rule of a table until the answer is about the connection's current user. [RT6] */
  #ask(
    connection: RealtimeConnection,
    channel: TableChannel,
    { before = null, refused }: { before?: ReadAccess | null; refused?: (message: string) => void } = {},
  ): MaybePromise<Asked | null> {
    const principal = principalOf(connection);
    return chain(this.#deps.askers.ask(principal, channel, before, refused), (asked) => {
      if (connection.principal === principal) return asked;
      asked?.right.end();
      return this.#ask(connection, channel, { before, ...(refused === undefined ? {} : { refused }) });
    });
  }

  /** Returns the subscription to a table that a message names. `refusal`: the failure for a channel of another kind. */
  #findTable(
    connection: RealtimeConnection,
    { channel, id, refusal }: SentName & { refusal: Failure },
  ): TableSubscription | Failure {
    const named = id ?? channel;
    if (typeof named !== "string") return failure("INVALID_MESSAGE", "channel or id is required");
    const subscription = this.find(connection, { channel, id });
    if (subscription === null) return failure("NOT_SUBSCRIBED", `Not subscribed to "${named}"`);
    return subscription instanceof TableSubscription ? subscription : refusal;
  }
}
