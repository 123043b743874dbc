import type { Clock, Millis } from "../../kernel/clock.ts";
import { AppError } from "../../kernel/errors.ts";
import { clientNetwork } from "../../kernel/network/addresses.ts";
import { SECOND_MS } from "../../kernel/time/duration.ts";
import {
  ANONYMOUS_PER_CLIENT_MAX,
  CLIENT_CHARS_AT_ONCE,
  CLIENT_CHARS_PER_SECOND,
  CONNECTIONS_PER_CLIENT_MAX,
  DROPPED_PER_SECOND_MAX,
  LONG_MESSAGE_MIN_CHARS,
} from "./limits.ts";
import type { MessageTurns, Source } from "./message-turns.ts";

/** Token bucket of up to `atOnce` tokens that refills evenly. Small, since every connection has two. */
export class TokenBucket {
  readonly #perSecond: number;
  readonly #atOnce: number;
  #left: number;
  #at: Millis;

  constructor(limits: { perSecond: number; atOnce: number }, now: Millis) {
    this.#perSecond = limits.perSecond;
    this.#atOnce = limits.atOnce;
    this.#left = limits.atOnce;
    this.#at = now;
  }

  /** Returns a bucket whose capacity is one second's refill. */
  static ofRate(perSecond: number, now: Millis): TokenBucket {
    return new TokenBucket({ perSecond, atOnce: perSecond }, now);
  }

  /** Takes `count` tokens; false, taking none, when there are fewer. */
  take(count: number, now: Millis): boolean {
    const refill = (Math.max(0, now - this.#at) / SECOND_MS) * this.#perSecond;
    this.#left = Math.min(this.#atOnce, this.#left + refill);
    this.#at = now;
    if (this.#left < count) return false;
    this.#left -= count;
    return true;
  }

  /** Refills the bucket completely. */
  refill(): void {
    this.#left = this.#atOnce;
  }
}

interface Client {
  openCount: number;
  anonymousCount: number;
  readonly chars: TokenBucket;
}

const CHARS = { perSecond: CLIENT_CHARS_PER_SECOND, atOnce: CLIENT_CHARS_AT_ONCE };

/** Counts the connections and long messages of each client network, over all areas. */
export class Clients {
  readonly #clock: Clock;
  readonly #clients = new Map<string, Client>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts a connection before it opens. Errors: 429 when its network has too many. */
  enter(name: string): void {
    const client = this.#clients.get(name) ?? {
      openCount: 0,
      anonymousCount: 0,
      chars: new TokenBucket(CHARS, this.#clock.now()),
    };
    if (client.openCount >= CONNECTIONS_PER_CLIENT_MAX) {
      throw new AppError(429, `At most ${CONNECTIONS_PER_CLIENT_MAX} connections of one address may be open`);
    }
    client.openCount++;
    this.#clients.set(name, client);
  }

  /** Uncounts a connection that has closed, or was not opened. */
  leave(name: string): void {
    const client = this.#clients.get(name);
    if (client !== undefined && --client.openCount === 0) this.#clients.delete(name);
  }

  /** Counts a connection that has authenticated without a user; false when its network has too many. */
  enterAnonymously(name: string): boolean {
    const client = this.#clients.get(name);
    if (client === undefined || client.anonymousCount >= ANONYMOUS_PER_CLIENT_MAX) return false;
    client.anonymousCount++;
    return true;
  }

  /** Uncounts an anonymous connection that has closed, or has authenticated as a user. */
  leaveAnonymously(name: string): void {
    const client = this.#clients.get(name);
    if (client !== undefined) client.anonymousCount--;
  }

  /** Counts the characters of a long message; false when it exceeds the rate. */
  takeChars(name: string, chars: number): boolean {
    return chars < LONG_MESSAGE_MIN_CHARS || this.#clients.get(name)?.chars.take(chars, this.#clock.now()) !== false;
  }
}

export interface MeterLimits {
  messagesPerSecond: number;
  /** Rate for the characters of messages of at least LONG_MESSAGE_MIN_CHARS. */
  charsPerSecond: number;
  charsAtOnce: number;
}

/** Bounds what one WebSocket outside the server's protocols may send, together with all others. */
export interface Meter {
  /** Handles a message of `chars` characters or bytes, now or in its turn. false: dropped, over a rate or behind a full queue. */
  take(chars: number, work: () => void): boolean;
  /** Counts a dropped message; false when so many were dropped that the WebSocket must be closed. [SK222] */
  takeDropped(): boolean;
  /** Drops the waiting messages. Call it when the WebSocket has closed, or was not opened. */
  end(): void;
}

/** Returns the meter of a new WebSocket. Errors: 429 when its client network has too many. */
export type MeterSocket = (address: string, limits: MeterLimits) => Meter;

export const createMeters =
  (deps: { clients: Clients; turns: MessageTurns; clock: Clock }): MeterSocket =>
  (address, { messagesPerSecond, charsPerSecond, charsAtOnce }) => {
    const { clients, turns, clock } = deps;
    const source: Source = { client: clientNetwork(address) };
    clients.enter(source.client);
    const messages = TokenBucket.ofRate(messagesPerSecond, clock.now());
    const long = new TokenBucket({ perSecond: charsPerSecond, atOnce: charsAtOnce }, clock.now());
    const dropped = TokenBucket.ofRate(DROPPED_PER_SECOND_MAX, clock.now());
    return {
      take(chars, work) {
        const now = clock.now();
        const isWithin = chars < LONG_MESSAGE_MIN_CHARS || long.take(chars, now);
        return (
          isWithin &&
          clients.takeChars(source.client, chars) &&
          messages.take(1, now) &&
          turns.take(source, chars, work)
        );
      },
      takeDropped: () => dropped.take(1, clock.now()),
      end() {
        clients.leave(source.client);
        turns.drop(source);
      },
    };
  };
