import { type Clock, type Millis, pause } from "../../../../kernel/clock.ts";
import { TURN_MS } from "../../../../kernel/limits.ts";
import { PRESENCE_MEMBERS_MAX } from "../limits.ts";
import type { LeaveReason } from "../messages.ts";
import { PresenceChannel, type PresenceListener } from "./presence-channel.ts";
import type { FanOut } from "./topic.ts";

/** Entries of one connection. They outlive a socket that is lost without a close, until their time to live is over. */
export interface Tracked {
  readonly connectionId: string;
  readonly userId: string;
  readonly channels: Set<string>;
  lastSeen: Millis;
  /** Called when the connection's entry on this channel has ended. */
  left(channel: string): void;
}

interface PresenceDeps {
  clock: Clock;
  topics: FanOut;
  ttlMs: number;
  /** Called for each message that listeners are sent. */
  onSent: (channel: string) => void;
}

/** Presence on all channels. States are JSON. [RT28 to RT32] */
export class Presence {
  readonly #deps: PresenceDeps;
  readonly #channels = new Map<string, PresenceChannel>();
  /** Connections with entries, ordered by the end of their time to live. */
  readonly #seen = new Set<Tracked>();
  #cancelExpiry: (() => void) | null = null;

  constructor(deps: PresenceDeps) {
    this.#deps = deps;
  }

  /** Sends the `presence_sync`, then the changes after it. */
  listen(name: string, listener: PresenceListener): void {
    this.#channelOf(name).listen(listener);
  }

  /** Continues with a listener whose user has changed and who may listen as well. */
  renew(name: string, listener: PresenceListener): void {
    this.#channelOf(name).renew(listener);
  }

  unlisten(name: string, listener: PresenceListener): void {
    const channel = this.#channels.get(name);
    channel?.unlisten(listener);
    if (channel?.isUnused === true) this.#channels.delete(name);
  }

  /** Holds the channel's changes until the returned function is called. */
  hold(name: string): () => void {
    return this.#channels.get(name)?.hold() ?? (() => {});
  }

  /** Adds or replaces an entry. `full`: the channel has no room; `busy`: it has too much to send. */
  track(tracked: Tracked, name: string, state: string): "tracked" | "full" | "busy" {
    const channel = this.#channelOf(name);
    const { userId, connectionId } = tracked;
    if (!channel.has(connectionId) && channel.size >= PRESENCE_MEMBERS_MAX) return "full";
    if (channel.isBehind) return "busy";
    tracked.channels.add(name);
    this.#seen.add(tracked);
    this.touch(tracked);
    channel.set(userId, connectionId, state);
    this.#deps.onSent(name);
    this.#scheduleExpiry();
    return "tracked";
  }

  untrack(tracked: Tracked, name: string, reason: LeaveReason): void {
    this.#leave(tracked, name, reason);
    if (tracked.channels.size === 0) this.#seen.delete(tracked);
  }

  /** Counts the entries of the channel. */
  entriesOf(name: string): number {
    return this.#channels.get(name)?.size ?? 0;
  }

  /** Extends the time to live of a connection's entries. */
  touch(tracked: Tracked): void {
    tracked.lastSeen = this.#deps.clock.now();
    if (this.#seen.delete(tracked)) this.#seen.add(tracked);
  }

  stop(): void {
    this.#cancelExpiry?.();
    this.#seen.clear();
  }

  #channelOf(name: string): PresenceChannel {
    const known = this.#channels.get(name);
    if (known !== undefined) return known;
    const { topics, clock } = this.#deps;
    const channel = new PresenceChannel(name, topics.topic(), (delayMs) => pause(clock, delayMs));
    this.#channels.set(name, channel);
    return channel;
  }

  #leave(tracked: Tracked, name: string, reason: LeaveReason): void {
    tracked.channels.delete(name);
    const channel = this.#channels.get(name);
    channel?.delete(tracked.connectionId, reason);
    this.#deps.onSent(name);
    if (channel?.isUnused === true) this.#channels.delete(name);
    tracked.left(name);
  }

  #expire(): void {
    this.#cancelExpiry = null;
    const { clock, ttlMs } = this.#deps;
    const now = clock.now();
    for (const tracked of this.#seen) {
      // Thousands of connections may have been lost at once: the rest follow in the next turn of the event loop.
      if (clock.now() - now >= TURN_MS) break;
      if (tracked.lastSeen + ttlMs <= now) {
        this.#seen.delete(tracked);
        for (const name of tracked.channels) this.#leave(tracked, name, "timeout");
      } else if (tracked.lastSeen <= now) break;
      // The clock was set back.
      else tracked.lastSeen = now;
    }
    this.#scheduleExpiry();
  }

  #scheduleExpiry(): void {
    if (this.#cancelExpiry !== null) return;
    const { clock, ttlMs } = this.#deps;
    for (const tracked of this.#seen) {
      const waitMs = Math.max(1, tracked.lastSeen + ttlMs - clock.now());
      this.#cancelExpiry = clock.after(waitMs, () => this.#expire());
      return;
    }
  }
}
