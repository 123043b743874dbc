import type { Clock } from "../../kernel/clock.ts";
import { AppError } from "../../kernel/errors.ts";
import {
  ANONYMOUS_PER_CLIENT_MAX,
  CLIENT_CHARS_AT_ONCE,
  CLIENT_CHARS_PER_SECOND,
  CONNECTIONS_PER_CLIENT_MAX,
  LONG_MESSAGE_MIN_CHARS,
} from "./limits.ts";
import { TokenBucket } from "./token-bucket.ts";

/** What the connections of one client network do together, over all areas. */
export interface Clients {
  /** Counts a connection that is about to open. Errors: 429 when its network has too many. */
  enter(client: string): void;
  /** It has closed, or was not opened. */
  leave(client: string): void;
  /** Counts an open connection that has authenticated without a user; false: its network has too many. */
  enterAnonymously(client: string): boolean;
  /** It has closed, or has a user now. */
  leaveAnonymously(client: string): void;
  /** Counts the characters of a long message; false: it is over the rate. */
  takeChars(client: string, chars: number): boolean;
}

interface Client {
  openCount: number;
  anonymousCount: number;
  readonly chars: TokenBucket;
}

export function createClients(clock: Clock): Clients {
  const clients = new Map<string, Client>();
  const limits = { perSecond: CLIENT_CHARS_PER_SECOND, atOnce: CLIENT_CHARS_AT_ONCE };
  return {
    enter(name) {
      const client = clients.get(name) ?? {
        openCount: 0,
        anonymousCount: 0,
        chars: new TokenBucket(limits, clock.now()),
      };
      if (client.openCount >= CONNECTIONS_PER_CLIENT_MAX) {
        throw new AppError(429, `At most ${CONNECTIONS_PER_CLIENT_MAX} connections of one address may be open`);
      }
      client.openCount++;
      clients.set(name, client);
    },
    leave(name) {
      const client = clients.get(name);
      if (client !== undefined && --client.openCount === 0) clients.delete(name);
    },
    enterAnonymously(name) {
      const client = clients.get(name);
      if (client === undefined || client.anonymousCount >= ANONYMOUS_PER_CLIENT_MAX) return false;
      client.anonymousCount++;
      return true;
    },
    leaveAnonymously(name) {
      const client = clients.get(name);
      if (client !== undefined) client.anonymousCount--;
    },
    takeChars(name, chars) {
      return chars < LONG_MESSAGE_MIN_CHARS || clients.get(name)?.chars.take(chars, clock.now()) !== false;
    },
  };
}
