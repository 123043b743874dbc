import { isPromise, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import type { ChannelMeter } from "../meter.ts";
import type { Broadcasts } from "../topics/broadcasts.ts";
import type { Presence } from "../topics/presence.ts";
import { keyOf, type RealtimeConnection, type Subscription, type TopicChannel } from "./model.ts";
import type { TopicRights } from "./topic-rights.ts";

/** What all subscriptions to presence and broadcast channels share. */
export interface TopicSubscriptionDeps {
  topicRights: TopicRights;
  presence: Presence;
  broadcasts: Broadcasts;
  meter: ChannelMeter;
}

/** A subscription to a presence or broadcast channel. Those of one connection to the same channel listen together. */
export class TopicSubscription implements Subscription {
  readonly kind: "presence" | "broadcast";
  readonly connection: RealtimeConnection;
  readonly channel: TopicChannel;
  readonly id: string | null;
  readonly #deps: TopicSubscriptionDeps;
  /** `connection.identity` when the right was given. */
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

  /** Takes the place of an earlier one of the same name, behind `subscribed`. */
  begin(): void {
    const { connection, name, id } = this;
    const own = connection.state.subscriptions;
    const earlier = own.get(keyOf(this));
    // One to the same channel goes on.
    const goesOn = earlier?.kind === this.kind && earlier.name === name;
    if (!goesOn) earlier?.end();
    connection.send({ type: "subscribed", channel: name, serverFilter: false, ...(id === null ? {} : { id }) });
    // Sending may have closed it as too slow.
    if (connection.isClosed) return;
    if (!goesOn) this.#deps.meter.begun(this);
    own.set(keyOf(this), this);
    if (this.kind === "broadcast") {
      this.#deps.broadcasts.listen(name, connection);
      return;
    }
    // Each `subscribed` is followed by the present entries, also on a channel that the connection listens to already.
    this.#deps.presence.unlisten(name, connection);
    this.#deps.presence.listen(name, connection);
  }

  /** Asks the rule for the present user. false: it denies, and the subscription has ended by that. */
  review(): MaybePromise<boolean> {
    const { connection, kind, name } = this;
    const { topicRights, presence, broadcasts } = this.#deps;
    const answered = (isAllowed: boolean): boolean => {
      // It may have ended while the rule was awaited.
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
    // Unless another subscription of this connection listens to the same channel.
    if (own.values().some((other) => other.kind === kind && other.name === name)) return;
    if (kind === "presence") presence.unlisten(name, connection);
    else broadcasts.unlisten(name, connection);
    topicRights.follow(connection, this.channel);
  }
}
