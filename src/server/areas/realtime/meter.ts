import type { Clock, Millis } from "../../../kernel/clock.ts";
import { Largest } from "../../../kernel/observing/largest.ts";
import { SECOND_MS } from "../../../kernel/time/duration.ts";
import { Scheduler } from "../../../kernel/time/scheduler.ts";
import type { Channel } from "./channel.ts";

const RATE_WINDOW_MS = 10 * SECOND_MS;

type Kind = Channel["kind"];

interface MeteredChannel {
  name: string;
  kind: Kind;
  subscribers: number;
  /** Messages since the first subscriber. */
  messages: number;
  /** Messages per second over the last RATE_WINDOW_MS. */
  perSecond: number;
}

interface Counted {
  readonly kind: Kind;
  subscribers: number;
  messages: number;
  readonly rate: Rate;
}

/**
 * Counts the subscriptions of channels, and the messages on those that have any. Counters are kept as events happen, so that a
 * list costs nothing per subscriber.
 */
export class ChannelMeter {
  readonly #clock: Clock;
  readonly #scheduler = new Scheduler();
  readonly #channels = new Map<string, Counted>();
  #subscriptions = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  begun({ name, kind }: { readonly name: string; readonly kind: Kind }): void {
    this.#subscriptions++;
    const known = this.#channels.get(name);
    if (known === undefined) this.#channels.set(name, { kind, subscribers: 1, messages: 0, rate: new Rate() });
    else known.subscribers++;
  }

  ended({ name }: { readonly name: string }): void {
    const channel = this.#channels.get(name);
    if (channel === undefined) return;
    this.#subscriptions--;
    if (--channel.subscribers === 0) this.#channels.delete(name);
  }

  /** Counts messages. Has no effect on a channel without subscribers. */
  sent(name: string, messages: number): void {
    const channel = this.#channels.get(name);
    if (channel === undefined) return;
    channel.messages += messages;
    channel.rate.add(messages, this.#clock.now());
  }

  /** Lists channels whose names begin with `prefix`, the largest first; `total` includes those beyond `limit`. */
  async list({ prefix, sort, limit }: { prefix: string; sort: "subscribers" | "rate"; limit: number }): Promise<{
    channels: MeteredChannel[];
    total: number;
    subscriptions: number;
  }> {
    const largest = new Largest<readonly [string, Counted]>(limit);
    const pace = this.#scheduler.pace();
    let total = 0;
    for (const entry of this.#channels) {
      if (pace.isDue()) await pace.next();
      const [name, { subscribers, rate }] = entry;
      if (!name.startsWith(prefix)) continue;
      total++;
      largest.add(entry, sort === "rate" ? rate.perSecond(this.#clock.now()) : subscribers);
    }
    const channels = largest.sorted().map(([name, { kind, subscribers, messages, rate }]) => {
      const perSecond = Math.round(rate.perSecond(this.#clock.now()) * 100) / 100;
      return { name, kind, subscribers, messages, perSecond };
    });
    return { channels, total, subscriptions: this.#subscriptions };
  }
}

/**
 * Sliding-window rate over RATE_WINDOW_MS: the count of the current window, and the share of the previous one that still counts.
 */
class Rate {
  #window = 0;
  #count = 0;
  #before = 0;

  add(count: number, now: Millis): void {
    this.#turn(now);
    this.#count += count;
  }

  perSecond(now: Millis): number {
    this.#turn(now);
    const share = 1 - (now % RATE_WINDOW_MS) / RATE_WINDOW_MS;
    return ((this.#count + this.#before * share) * 1000) / RATE_WINDOW_MS;
  }

  #turn(now: Millis): void {
    const window = Math.floor(now / RATE_WINDOW_MS);
    if (window === this.#window) return;
    this.#before = window === this.#window + 1 ? this.#count : 0;
    this.#count = 0;
    this.#window = window;
  }
}
