import { isPromise, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import type { ChannelMeter } from "../meter.ts";
import type { Broadcasts } from "../topics/broadcasts.ts";
import type { Presence } from "../topics/presence.ts";
import { keyOf, type RealtimeConnection, type Subscription, type TopicChannel } from "./model.ts";
import type { TopicRights } from "./topic-rights.ts";

/** Dependencies of all subscriptions to presence and broadcast channels. */
export interface TopicSubscriptionDeps {
  topicRights: TopicRights;
  presence: Presence;
  broadcasts: Broadcasts;
  meter: ChannelMeter;
}

/** A subscription to a presence or broadcast channel. Those of one connection to the same channel share one listener. */
export class TopicSubscription implements Subscription {
  readonly kind: "presence" | "broadcast";
  readonly connection: RealtimeConnection;
  readonly channel: TopicChannel;
  readonly id: string | null;
  readonly #deps: TopicSubscriptionDeps;
  /** Value of `connection.identity` when the right was granted. */
  #identity: number;

  constructor(
    connection: RealtimeConnection,
    { channel, id }: { channel: TopicChannel; id: string | null },
    deps: TopicSubscriptionDeps,
  ) {
    this.kind = channel.kind;
    this.connection = connection;
    this.channel = channel;
    this.id = id;
    this.#deps = deps;
    this.#identity = connection.identity;
  }

  get name(): string {
    return this.channel.name;
  }

  get isOutdated(): boolean {
    return this.connection.identity !== this.#identity;
  }

  get isEnded(): boolean {
    return this.connection.state.subscriptions.get(keyOf(this)) !== this;
  }

  /** Sends `subscribed`, and replaces an earlier subscription of the same name. */
  begin(): void {
    const { connection, name, id } = this;
    const own = connection.state.subscriptions;
    const earlier = own.get(keyOf(this));
    // An earlier subscription to the same channel continues.
    const goesOn = earlier?.kind === this.kind && earlier.name === name;
    if (!goesOn) earlier?.end();
    connection.send({ type: "subscribed", channel: name, serverFilter: false, ...(id === null ? {} : { id }) });
    // Sending may have closed the connection as too slow.
    if (connection.isClosed) return;
    if (!goesOn) this.#deps.meter.begun(this);
    own.set(keyOf(this), this);
    if (this.kind === "broadcast") {
      this.#deps.broadcasts.listen(name, connection);
      return;
    }
    // Each `subscribed` is followed by the current entries, even on a channel that the connection already listens to.
    this.#deps.presence.unlisten(name, connection);
    this.#deps.presence.listen(name, connection);
  }

  /** Evaluates the rule for the current user. false: it denies, and the subscription has ended. */
  review(): MaybePromise<boolean> {
    const { connection, kind, name } = this;
    const { topicRights, presence, broadcasts } = this.#deps;
    const answered = (isAllowed: boolean): boolean => {
      // The subscription may have ended while the rule was awaited.
      const { isEnded } = this;
      if (!isEnded && !isAllowed) this.end();
      if (!isEnded && isAllowed) {
        this.#identity = connection.identity;
        if (kind === "presence") presence.renew(name, connection);
        else broadcasts.listen(name, connection);
      }
      topicRights.follow(connection, this.channel);
      return isEnded || isAllowed;
    };
    const asked = topicRights.ask(connection, this.channel);
    if (!isPromise(asked)) return answered(asked);
    return asked.then(answered).finally(topicRights.hold(this.channel));
  }

  end(): void {
    if (this.isEnded) return;
    const { connection, kind, name } = this;
    const { topicRights, presence, broadcasts, meter } = this.#deps;
    const own = connection.state.subscriptions;
    own.delete(keyOf(this));
    meter.ended(this);
    // Another subscription of this connection may listen to the same channel.
    if (own.values().some((other) => other.kind === kind && other.name === name)) return;
    if (kind === "presence") presence.unlisten(name, connection);
    else broadcasts.unlisten(name, connection);
    topicRights.follow(connection, this.channel);
  }
}
