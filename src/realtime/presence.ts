import type { Clock, Millis } from "../kernel/clock.ts";
import type { LeaveReason } from "./encoding.ts";
import { PRESENCE_MEMBERS_MAX } from "./limits.ts";
import type { Listener, Topic, Topics } from "./topic.ts";

/** One connection as presence sees it; outlives its socket when that is lost without a close, until the TTL. */
export interface Tracked {
  readonly connectionId: string;
  readonly userId: string;
  readonly channels: Set<string>;
  lastSeen: Millis;
}

export interface Presence {
  /** Joins the channel's listeners and gives the `presence_sync` for the new one. */
  listen(channel: string, listener: Listener): string;
  unlisten(channel: string, listener: Listener): void;
  /** Begins or changes an entry. false: the channel is full. */
  track(tracked: Tracked, channel: string, state: string): boolean;
  /** Ends one entry, or all of them. */
  untrack(tracked: Tracked, channel: string | null, reason: LeaveReason): void;
  /** A ping came. */
  touch(tracked: Tracked): void;
  stop(): void;
}

interface PresenceChannel {
  topic: Topic;
  /** Entries of `presence_sync` as JSON, by connection. */
  members: Map<string, string>;
}

/** Who is there, on channels of any number of members. States are JSON already. Spec: Realtime connection; decisions 10. */
export function createPresence(deps: { clock: Clock; topics: Topics; ttlMs: number }): Presence {
  const { clock, topics, ttlMs } = deps;
  const channels = new Map<string, PresenceChannel>();
  /** Everybody with an entry, the one heard of longest ago first: all have the same time to live. */
  const seen = new Set<Tracked>();
  let cancelExpiry: (() => void) | null = null;

  const channelOf = (name: string): PresenceChannel => {
    const known = channels.get(name);
    if (known !== undefined) return known;
    const channel = { topic: topics(), members: new Map<string, string>() };
    channels.set(name, channel);
    return channel;
  };
  const forgetIfEmpty = (name: string, channel: PresenceChannel): void => {
    if (channel.members.size === 0 && channel.topic.members.size === 0) channels.delete(name);
  };

  const leave = (tracked: Tracked, name: string, reason: LeaveReason): void => {
    tracked.channels.delete(name);
    const channel = channels.get(name);
    if (channel === undefined || !channel.members.delete(tracked.connectionId)) return;
    const { userId, connectionId } = tracked;
    channel.topic.publish(JSON.stringify({ type: "presence_leave", channel: name, userId, connectionId, reason }));
    forgetIfEmpty(name, channel);
  };
  const leaveAll = (tracked: Tracked, reason: LeaveReason): void => {
    seen.delete(tracked);
    for (const name of tracked.channels) leave(tracked, name, reason);
  };

  const expire = (): void => {
    cancelExpiry = null;
    const now = clock.now();
    for (const tracked of seen) {
      if (tracked.lastSeen + ttlMs > now) break;
      leaveAll(tracked, "timeout");
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
    listen(name, listener) {
      const channel = channelOf(name);
      channel.topic.join(listener);
      const users = [...channel.members.values()].join(",");
      return `{"type":"presence_sync","channel":${JSON.stringify(name)},"users":[${users}]}`;
    },
    unlisten(name, listener) {
      const channel = channels.get(name);
      if (channel === undefined) return;
      channel.topic.leave(listener);
      forgetIfEmpty(name, channel);
    },
    track(tracked, name, state) {
      const channel = channelOf(name);
      const isUpdate = channel.members.has(tracked.connectionId);
      if (!isUpdate && channel.members.size >= PRESENCE_MEMBERS_MAX) return false;
      const { userId, connectionId } = tracked;
      const entry = `"userId":${JSON.stringify(userId)},"connectionId":"${connectionId}","state":${state}}`;
      channel.members.set(connectionId, `{${entry}`);
      tracked.channels.add(name);
      seen.add(tracked);
      touch(tracked);
      const type = isUpdate ? "presence_update" : "presence_join";
      channel.topic.publish(`{"type":"${type}","channel":${JSON.stringify(name)},${entry}`);
      scheduleExpiry();
      return true;
    },
    untrack(tracked, name, reason) {
      if (name === null) return leaveAll(tracked, reason);
      leave(tracked, name, reason);
      if (tracked.channels.size === 0) seen.delete(tracked);
    },
    touch,
    stop() {
      cancelExpiry?.();
      seen.clear();
    },
  };
}
