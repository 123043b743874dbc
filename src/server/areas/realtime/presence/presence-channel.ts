import { REPLAY_WAITING_MAX_BYTES, SYNC_AT_ONCE_MEMBERS_MAX } from "../limits.ts";
import type { LeaveReason } from "../messages.ts";
import type { Listener, Topic } from "../topics/topic.ts";
import { createArrivals } from "./arrivals.ts";

export interface PresenceListener extends Listener {
  sendText(text: string): void;
  /** Resolves when what waits has been sent, or the connection has ended. */
  drained(): Promise<void>;
}

/** Never changed in place: an entry has changed when its object is another. */
interface Member {
  userId: string;
  connectionId: string;
  /** The object of `presence_sync` as JSON, without its opening brace. */
  entry: string;
}

/** The entries and the listeners of one channel. */
export interface PresenceChannel {
  readonly size: number;
  readonly isUnused: boolean;
  /** Too much waits to be sent. */
  readonly isBehind: boolean;
  has(connectionId: string): boolean;
  /** `state` is JSON. */
  set(userId: string, connectionId: string, state: string): void;
  delete(connectionId: string, reason: LeaveReason): void;
  /** Sends no changes, and to listeners that wait for it no long sync, until the function returned is called. */
  hold(): () => void;
  /** Sends the `presence_sync`, then the changes that follow it. */
  listen(listener: PresenceListener): void;
  /** The listener is of another user, who may listen as well. A sync that it had not got is sent anew. */
  renew(listener: PresenceListener): void;
  unlisten(listener: PresenceListener): void;
}

export function createPresenceChannel(
  name: string,
  topic: Topic,
  pause: (delayMs: number) => Promise<void>,
): PresenceChannel {
  const { listed, arrival, departure } = createTexts(name);
  const members = new Map<string, Member>();
  /** Listeners that are still reading a long `presence_sync`, each with its attempt. */
  const catchingUp = new Map<PresenceListener, { readonly identity: number }>();

  const sync = (): string => listed(members.values());
  /** The messages that lead from the known entries to the present ones. */
  const differences = (known: ReadonlyMap<string, Member>): string[] => {
    const messages: string[] = [];
    for (const [id, member] of known) if (!members.has(id)) messages.push(departure(member, "disconnect"));
    for (const [id, member] of members) {
      const before = known.get(id);
      if (before === undefined) messages.push(arrival("presence_join", member));
      else if (before !== member) messages.push(arrival("presence_update", member));
    }
    return messages;
  };

  /** Holds changes back until a long sync has been read: the first one would otherwise close the connection as too slow. */
  const catchUp = async (listener: PresenceListener): Promise<void> => {
    const { identity } = listener;
    const attempt = { identity };
    catchingUp.set(listener, attempt);
    const isOver = (): boolean => catchingUp.get(listener) !== attempt || listener.identity !== identity;
    while (listener.waitingBytes > REPLAY_WAITING_MAX_BYTES) {
      const known = new Map(members);
      await listener.drained();
      for (let held = topic.released(); held !== null; held = topic.released()) await held;
      if (isOver()) return;
      const messages = differences(known);
      const length = messages.reduce((sum, message) => sum + message.length, 0);
      for (const message of length > REPLAY_WAITING_MAX_BYTES ? [sync()] : messages) listener.sendText(message);
    }
    if (isOver()) return;
    catchingUp.delete(listener);
    topic.join(listener);
  };

  const greet = (listener: PresenceListener, text: string): void => {
    listener.sendText(text);
    catchUp(listener).catch(() => listener.closeAsSlow());
  };
  const arrivals = createArrivals({
    sync,
    send: greet,
    readingCount: () => catchingUp.size,
    released: () => topic.released(),
    pause,
  });

  const listen = (listener: PresenceListener): void => {
    if (members.size <= SYNC_AT_ONCE_MEMBERS_MAX && arrivals.isEmpty) greet(listener, sync());
    else arrivals.add(listener);
  };
  const unlisten = (listener: PresenceListener): void => {
    arrivals.delete(listener);
    catchingUp.delete(listener);
    topic.leave(listener);
  };

  return {
    get size() {
      return members.size;
    },
    get isUnused() {
      return members.size === 0 && topic.size === 0 && catchingUp.size === 0 && arrivals.isEmpty;
    },
    get isBehind() {
      return topic.isBehind;
    },
    hold: () => topic.hold(),
    has: (connectionId) => members.has(connectionId),
    set(userId, connectionId, state) {
      const entry = `"userId":${JSON.stringify(userId)},"connectionId":"${connectionId}","state":${state}}`;
      const type = members.has(connectionId) ? "presence_update" : "presence_join";
      const member = { userId, connectionId, entry };
      members.set(connectionId, member);
      topic.publish(arrival(type, member));
    },
    delete(connectionId, reason) {
      const member = members.get(connectionId);
      if (member === undefined) return;
      members.delete(connectionId);
      topic.publish(departure(member, reason));
    },
    listen,
    renew(listener) {
      if (topic.has(listener)) return topic.join(listener);
      unlisten(listener);
      listen(listener);
    },
    unlisten,
  };
}

/** The messages of a channel. */
function createTexts(name: string) {
  const channelJson = JSON.stringify(name);
  return {
    listed(members: Iterable<Member>): string {
      const users = Array.from(members, (member) => `{${member.entry}`).join(",");
      return `{"type":"presence_sync","channel":${channelJson},"users":[${users}]}`;
    },
    arrival: (type: "presence_join" | "presence_update", { entry }: Member): string =>
      `{"type":"${type}","channel":${channelJson},${entry}`,
    departure: ({ userId, connectionId }: Member, reason: LeaveReason): string =>
      JSON.stringify({ type: "presence_leave", channel: name, userId, connectionId, reason }),
  };
}
