import { AppError, badField, tooLarge } from "../kernel/errors.ts";
import type { JsonObject } from "../kernel/json.ts";
import { isBroadcastChannel } from "./channel.ts";
import type { FanOut } from "./fan-out.ts";
import { CHANNEL_LENGTH_MAX, EVENT_LENGTH_MAX, MESSAGE_MAX_BYTES } from "./limits.ts";
import type { Listener, Topic } from "./topic.ts";

export interface Broadcast {
  channel: string;
  event: string;
  payload: JsonObject;
}

export interface Broadcasts {
  listen(channel: string, listener: Listener): void;
  unlisten(channel: string, listener: Listener): void;
  /** To every subscriber of the channel but `except`. false: more waits to be sent there than should; it is not sent. */
  send(broadcast: Broadcast, except?: Listener | null): boolean;
}

export function createBroadcasts(topics: FanOut): Broadcasts {
  /** Channels that somebody listens to. */
  const channels = new Map<string, Topic>();
  return {
    listen(name, listener) {
      const topic = channels.get(name) ?? topics.topic();
      channels.set(name, topic);
      topic.join(listener);
    },
    unlisten(name, listener) {
      const topic = channels.get(name);
      topic?.leave(listener);
      if (topic?.size === 0) channels.delete(name);
    },
    send({ channel, event, payload }, except = null) {
      const topic = channels.get(channel);
      if (topic === undefined) return true;
      if (topic.isBehind) return false;
      topic.publish(JSON.stringify({ type: "broadcast_event", channel, event, data: payload }), except);
      return true;
    },
  };
}

/** What the server's own code and the endpoint are told. */
export const channelIsBusy = (): AppError =>
  new AppError(503, "The channel has more to send than it can", { headers: { "retry-after": "1" } });

export const isEventName = (event: unknown): event is string =>
  typeof event === "string" && event !== "" && event.length <= EVENT_LENGTH_MAX;

/** Errors: 400 naming the member at fault, 413 a payload over MESSAGE_MAX_BYTES. Spec: Realtime endpoints. */
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
  if (Buffer.byteLength(JSON.stringify(payload)) > MESSAGE_MAX_BYTES) {
    throw tooLarge(`payload must be at most ${MESSAGE_MAX_BYTES} bytes`);
  }
  // An object that came out of JSON.
  return { channel, event, payload: payload as JsonObject };
}
