import { type Static, Type } from "typebox";
import { AppError, tooLarge } from "../../../../kernel/errors.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import { AnyObject, type FieldRule, refine } from "../../../../kernel/schema/types.ts";
import { isBroadcastChannel } from "../channel.ts";
import { CHANNEL_LENGTH_MAX, EVENT_LENGTH_MAX, MESSAGE_MAX_BYTES } from "../limits.ts";
import type { FanOut } from "./fan-out.ts";
import type { Listener, Topic } from "./topic.ts";

/** What the endpoint and `app.broadcast` take. */
export const Broadcast = Type.Object({
  channel: refine(
    Type.String({ description: "With its prefix `broadcast:`" }),
    isBroadcastChannel,
    invalid(`must be "broadcast:" and a name, at most ${CHANNEL_LENGTH_MAX} characters`),
  ),
  event: refine(
    Type.String(),
    (event) => event !== "" && event.length <= EVENT_LENGTH_MAX,
    invalid(`must have 1 to ${EVENT_LENGTH_MAX} characters`),
  ),
  payload: Type.Unsafe<JsonObject>(AnyObject),
});
export type Broadcast = Static<typeof Broadcast>;

function invalid(wanted: string): FieldRule["problem"] {
  return (name) => ({ code: "invalid_value", message: `${name} ${wanted}` });
}

export interface Broadcasts {
  /** Again: the listener is of another user, who may listen as well. */
  listen(channel: string, listener: Listener): void;
  unlisten(channel: string, listener: Listener): void;
  /** Sends nothing on the channel until the function returned is called. */
  hold(channel: string): () => void;
  /** Sends to every subscriber of the channel but `except`. false: too much waits there already, and it is not sent. */
  send(broadcast: Broadcast, except?: Listener | null): boolean;
}

/** `onSent` learns of each message that subscribers are sent. */
export function createBroadcasts(topics: FanOut, onSent: (channel: string) => void): Broadcasts {
  /** By channel, where it has subscribers. */
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
    hold: (name) => channels.get(name)?.hold() ?? (() => {}),
    send({ channel, event, payload }, except = null) {
      const topic = channels.get(channel);
      if (topic === undefined) return true;
      if (topic.isBehind) return false;
      topic.publish(JSON.stringify({ type: "broadcast_event", channel, event, data: payload }), except);
      onSent(channel);
      return true;
    },
  };
}

/** The answer where `Broadcasts.send` returns false. */
export const channelIsBusy = (): AppError =>
  new AppError(503, "The channel has more to send than it can", { headers: { "retry-after": "1" } });

/** Errors: 413 for a payload over MESSAGE_MAX_BYTES. */
export function checkPayload({ payload }: Broadcast): void {
  if (Buffer.byteLength(JSON.stringify(payload)) > MESSAGE_MAX_BYTES) {
    throw tooLarge(`payload must have at most ${MESSAGE_MAX_BYTES} bytes`);
  }
}
