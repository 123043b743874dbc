import type { Clock } from "../../../kernel/clock.ts";
import { Largest } from "../../../kernel/observing/largest.ts";
import { nextTurn } from "../../../kernel/time/scheduler.ts";
import { CHANNELS_LOOKED_PER_TURN } from "./limits.ts";
import type { Subscription } from "./subscriptions/model.ts";
import { Rate } from "./administration/rate.ts";

type Kind = Subscription["kind"];

export interface MeteredChannel {
  name: string;
  kind: Kind;
  subscribers: number;
  /** Messages since its first subscriber. */
  messages: number;
  /** Messages, lately. */
  perSecond: number;
}

/** Counts subscriptions of channels, and messages on those that have any: what is counted as it happens is listed at no cost for subscribers. */
export interface ChannelMeter {
  begun(subscription: { name: string; kind: Kind }): void;
  ended(subscription: { name: string }): void;
  /** Nothing happens where nobody listens. */
  sent(channel: string, messages: number): void;
  /** Channels that begin with `prefix`, the largest first; `total` counts those beyond `limit`. */
  list(wanted: { prefix: string; sort: "subscribers" | "rate"; limit: number }): Promise<{
    channels: MeteredChannel[];
    total: number;
    subscriptions: number;
  }>;
}

interface Counted {
  readonly kind: Kind;
  subscribers: number;
  messages: number;
  readonly rate: Rate;
}

export function createChannelMeter(clock: Clock): ChannelMeter {
  const channels = new Map<string, Counted>();
  let subscriptions = 0;

  const metered = ([name, { kind, subscribers, messages, rate }]: readonly [string, Counted]): MeteredChannel => ({
    name,
    kind,
    subscribers,
    messages,
    perSecond: Math.round(rate.perSecond(clock.now()) * 100) / 100,
  });
  return {
    begun({ name, kind }) {
      subscriptions++;
      const known = channels.get(name);
      if (known === undefined) channels.set(name, { kind, subscribers: 1, messages: 0, rate: new Rate() });
      else known.subscribers++;
    },
    ended({ name }) {
      const channel = channels.get(name);
      if (channel === undefined) return;
      subscriptions--;
      if (--channel.subscribers === 0) channels.delete(name);
    },
    sent(name, messages) {
      const channel = channels.get(name);
      if (channel === undefined) return;
      channel.messages += messages;
      channel.rate.add(messages, clock.now());
    },
    async list({ prefix, sort, limit }) {
      const largest = new Largest<readonly [string, Counted]>(limit);
      let [total, looked] = [0, 0];
      for (const entry of channels) {
        if (++looked % CHANNELS_LOOKED_PER_TURN === 0) await nextTurn();
        const [name, { subscribers, rate }] = entry;
        if (!name.startsWith(prefix)) continue;
        total++;
        largest.add(entry, sort === "rate" ? rate.perSecond(clock.now()) : subscribers);
      }
      return { channels: largest.sorted().map(metered), total, subscriptions };
    },
  };
}
