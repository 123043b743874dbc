import { badField } from "../kernel/errors.ts";
import type { JsonObject } from "../kernel/json.ts";
import { isBroadcastChannel } from "./channel.ts";
import { CHANNEL_LENGTH_MAX, EVENT_LENGTH_MAX } from "./limits.ts";
import type { Listener, Topic, Topics } from "./topic.ts";

export interface Broadcast {
  channel: string;
  event: string;
  payload: JsonObject;
}

export interface Broadcasts {
  listen(channel: string, listener: Listener): void;
  unlisten(channel: string, listener: Listener): void;
  /** To every subscriber of the channel but `except`. */
  send(broadcast: Broadcast, except?: Listener | null): void;
}

export function createBroadcasts(topics: Topics): Broadcasts {
  /** Channels that somebody listens to. */
  const channels = new Map<string, Topic>();
  return {
    listen(name, listener) {
      const topic = channels.get(name) ?? topics();
      channels.set(name, topic);
      topic.join(listener);
    },
    unlisten(name, listener) {
      const topic = channels.get(name);
      topic?.leave(listener);
      if (topic?.members.size === 0) channels.delete(name);
    },
    send({ channel, event, payload }, except = null) {
      const topic = channels.get(channel);
      if (topic === undefined) return;
      topic.publish(JSON.stringify({ type: "broadcast_event", channel, event, data: payload }), except);
    },
  };
}

export const isEventName = (event: unknown): event is string =>
  typeof event === "string" && event !== "" && event.length <= EVENT_LENGTH_MAX;

/** Errors: 400 naming the member at fault. Spec: Realtime endpoints. */
export function checkBroadcast(channel: unknown, event: unknown, payload: unknown): Broadcast {
  for (const [name, value] of Object.entries({ channel, event, payload })) {
    if (value === undefined || value === null) throw badField(name, "required", `${name} is required`);
  }
  if (typeof channel !== "string") throw badField("channel", "invalid_type", "channel must be text");
  if (!isBroadcastChannel(channel)) {
    const wanted = `channel must be "broadcast:" and a name, at most ${CHANNEL_LENGTH_MAX} characters`;
    throw badField("channel", "invalid_value", `${wanted}, got "${channel.slice(0, CHANNEL_LENGTH_MAX)}"`);
  }
  if (typeof event !== "string") throw badField("event", "invalid_type", "event must be text");
  if (!isEventName(event)) {
    throw badField("event", "invalid_value", `event must have 1 to ${EVENT_LENGTH_MAX} characters`);
  }
  if (typeof payload !== "object" || payload === null || Array.isArray(payload)) {
    throw badField("payload", "invalid_type", "payload must be an object");
  }
  // An object that came out of JSON.
  return { channel, event, payload: payload as JsonObject };
}
