import type { Clock } from "../../kernel/clock.ts";
import { clientNetwork } from "../../kernel/network/client-network.ts";
import type { Clients } from "./clients.ts";
import { DROPPED_PER_SECOND_MAX, LONG_MESSAGE_MIN_CHARS } from "./limits.ts";
import type { MessageTurns, Source } from "./message-turns.ts";
import { TokenBucket } from "./token-bucket.ts";

export interface MeterLimits {
  messagesPerSecond: number;
  /** Of messages of LONG_MESSAGE_MIN_CHARS and more. */
  charsPerSecond: number;
  charsAtOnce: number;
}

/** What one WebSocket may send whose messages are not a protocol of the server: the same as all others, and counted with them. */
export interface Meter {
  /** Handles a message of so many characters or bytes, now or in its turn. false: over a rate, or too much waits; it is dropped. */
  take(chars: number, work: () => void): boolean;
  /** Counts a message that is dropped; false: so many are that the WebSocket is to be closed. [SK222] */
  takeDropped(): boolean;
  /** Call when it has closed, or was not opened: what waits is dropped. */
  end(): void;
}

/** Begins to count a WebSocket. Errors: 429 when its client network has too many. */
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
