import { BoundedMap } from "../../kernel/bounded-map.ts";
import type { Clock, Millis } from "../../kernel/clock.ts";
import { AppError } from "../../kernel/errors.ts";
import { clientNetwork } from "../../kernel/network/addresses.ts";
import { SECOND_MS } from "../../kernel/time/duration.ts";
import type { RateLimit, RateLimitGroup } from "../config/types.ts";
import { COUNTED_KEYS_MAX } from "./limits.ts";

/** The limits that apply where `rateLimits` sets none. [HT10] */
export const RATE_LIMITS: Readonly<Record<RateLimitGroup, RateLimit>> = {
  global: { requests: 10_000_000, window: 60 },
  auth: { requests: 300, window: 60 },
  signin: { requests: 10, window: 60 },
  signup: { requests: 30, window: 60 },
  events: { requests: 100, window: 60 },
  phone: { requests: 20, window: 3_600 },
  mcp: { requests: 600, window: 60 },
  embeddings: { requests: 60, window: 60 },
};

interface Window {
  endsAt: Millis;
  count: number;
}

/** Counts per key in fixed windows that begin with a key's first hit. */
export type RateLimiter = ReturnType<typeof createRateLimiter>;

export function createRateLimiter(limit: RateLimit, clock: Clock) {
  const windows = new BoundedMap<string, Window>(COUNTED_KEYS_MAX);

  const current = (key: string): Window => {
    const now = clock.now();
    const window = windows.get(key);
    const endsAt = now + limit.window * SECOND_MS;
    // A window with a later end began before the clock was set back. [HT15]
    if (window !== undefined && window.endsAt > now && window.endsAt <= endsAt) return window;
    const fresh = { endsAt, count: 0 };
    windows.set(key, fresh);
    return fresh;
  };
  const refuse = (window: Window): never => {
    const retryAfterSeconds = Math.max(1, Math.ceil((window.endsAt - clock.now()) / SECOND_MS));
    throw new AppError(429, "Rate limit exceeded", { headers: { "retry-after": String(retryAfterSeconds) } });
  };

  return {
    /** Counts one hit. Errors: 429 with `Retry-After` once the window is full. */
    hit(key: string): void {
      const window = current(key);
      if (window.count >= limit.requests) refuse(window);
      window.count++;
    },
    /** Checks the limit without counting: for limits on failures, which are counted when they happen. */
    check(key: string): void {
      const window = current(key);
      if (window.count >= limit.requests) refuse(window);
    },
    /** Counts without refusing. */
    count(key: string): void {
      current(key).count++;
    },
  };
}

/** Whether one client can reach the limit. It is then counted per network from the first request. */
export const isTightLimit = ({ requests, window }: RateLimit): boolean => requests / window < 20_000;

/** Counts all requests of a window. */
export interface RequestCount {
  /** Counts one request. Returns how many there were before it. */
  add(): number;
  /** Begins a window, with its first request. */
  restart(): void;
}

function createRequestCount(): RequestCount {
  let total = 0;
  return {
    add: () => total++,
    restart() {
      total = 1;
    },
  };
}

/**
 * Creates the limiter of group `global`, which counts every request. While all clients together are below the limit, no single one
 * exceeds it, so clients are counted one by one only above it: a request usually costs one addition. `total` counts the requests of
 * all processes.
 */
export function createGlobalLimiter(
  limit: RateLimit,
  clock: Clock,
  total: RequestCount = createRequestCount(),
): (address: () => string) => void {
  const isTight = isTightLimit(limit);
  const perNetwork = createRateLimiter(limit, clock);
  let endsAt = 0;
  return (address) => {
    if (isTight) return perNetwork.hit(clientNetwork(address()));
    if (total.add() < limit.requests) return;
    const now = clock.now();
    if (endsAt <= now || endsAt > now + limit.window * SECOND_MS) {
      endsAt = now + limit.window * SECOND_MS;
      total.restart();
      return;
    }
    perNetwork.hit(clientNetwork(address()));
  };
}
