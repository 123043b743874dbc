import { type Clock, type Millis, pause } from "../../../../kernel/clock.ts";
import { PRESENCE_MEMBERS_MAX, SLICE_MS } from "../limits.ts";
import type { LeaveReason } from "../messages.ts";
import type { FanOut } from "../topics/fan-out.ts";
import { createPresenceChannel, type PresenceChannel, type PresenceListener } from "./presence-channel.ts";

/** The entries of one connection. They outlive a socket that is lost without a close, until the time to live is over. */
export interface Tracked {
  readonly connectionId: string;
  readonly userId: string;
  readonly channels: Set<string>;
  lastSeen: Millis;
  /** Its entry on this channel has ended. */
  left(channel: string): void;
}

export interface Presence {
  /** Sends the `presence_sync`, then the changes that follow it. */
  listen(channel: string, listener: PresenceListener): void;
  /** The listener is of another user, who may listen as well. */
  renew(channel: string, listener: PresenceListener): void;
  unlisten(channel: string, listener: PresenceListener): void;
  /** Sends no changes of the channel until the function returned is called. */
  hold(channel: string): () => void;
  /** Adds or changes an entry. `full`: the channel has no room; `busy`: it has too much to send. */
  track(tracked: Tracked, channel: string, state: string): "tracked" | "full" | "busy";
  untrack(tracked: Tracked, channel: string, reason: LeaveReason): void;
  /** How many entries the channel has. */
  entriesOf(channel: string): number;
  /** Extends the time to live of its entries. */
  touch(tracked: Tracked): void;
  stop(): void;
}

/** Presence on all channels. States are JSON. [RT28 to RT32] */
export function createPresence(deps: {
  clock: Clock;
  topics: FanOut;
  ttlMs: number;
  /** Learns of each message that listeners are sent. */
  onSent: (channel: string) => void;
}): Presence {
  const { clock, topics, ttlMs, onSent } = deps;
  const channels = new Map<string, PresenceChannel>();
  /** Connections with entries, in the order in which their time to live is over. */
  const seen = new Set<Tracked>();
  let cancelExpiry: (() => void) | null = null;

  const channelOf = (name: string): PresenceChannel => {
    const known = channels.get(name);
    if (known !== undefined) return known;
    const channel = createPresenceChannel(name, topics.topic(), (delayMs) => pause(clock, delayMs));
    channels.set(name, channel);
    return channel;
  };

  const leave = (tracked: Tracked, name: string, reason: LeaveReason): void => {
    tracked.channels.delete(name);
    const channel = channels.get(name);
    channel?.delete(tracked.connectionId, reason);
    onSent(name);
    if (channel?.isUnused === true) channels.delete(name);
    tracked.left(name);
  };

  const expire = (): void => {
    cancelExpiry = null;
    const now = clock.now();
    for (const tracked of seen) {
      // Thousands of connections may have been lost at once: the rest follow in the next turn of the event loop.
      if (clock.now() - now >= SLICE_MS) break;
      if (tracked.lastSeen + ttlMs <= now) {
        seen.delete(tracked);
        for (const name of tracked.channels) leave(tracked, name, "timeout");
      } else if (tracked.lastSeen <= now) break;
      // The clock was set back.
      else tracked.lastSeen = now;
    }
    scheduleExpiry();
  };
  const scheduleExpiry = (): void => {
    if (cancelExpiry !== null) return;
    for (const tracked of seen) {
      cancelExpiry = clock.after(Math.max(1, tracked.lastSeen + ttlMs - clock.now()), expire);
      return;
    }
  };
  const touch = (tracked: Tracked): void => {
    tracked.lastSeen = clock.now();
    if (seen.delete(tracked)) seen.add(tracked);
  };

  return {
    listen: (name, listener) => channelOf(name).listen(listener),
    renew: (name, listener) => channelOf(name).renew(listener),
    unlisten(name, listener) {
      const channel = channels.get(name);
      channel?.unlisten(listener);
      if (channel?.isUnused === true) channels.delete(name);
    },
    hold: (name) => channels.get(name)?.hold() ?? (() => {}),
    track(tracked, name, state) {
      const channel = channelOf(name);
      const { userId, connectionId } = tracked;
      if (!channel.has(connectionId) && channel.size >= PRESENCE_MEMBERS_MAX) return "full";
      if (channel.isBehind) return "busy";
      tracked.channels.add(name);
      seen.add(tracked);
      touch(tracked);
      channel.set(userId, connectionId, state);
      onSent(name);
      scheduleExpiry();
      return "tracked";
    },
    untrack(tracked, name, reason) {
      leave(tracked, name, reason);
      if (tracked.channels.size === 0) seen.delete(tracked);
    },
    entriesOf: (name) => channels.get(name)?.size ?? 0,
    touch,
    stop() {
      cancelExpiry?.();
      seen.clear();
    },
  };
}
