import { type Static, Type } from "typebox";
import { AppError, tooLarge } from "../../../../kernel/errors.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import { AnyObject, type FieldRule, refine } from "../../../../kernel/schema/types.ts";
import { isBroadcastChannel } from "../channel.ts";
import { CHANNEL_LENGTH_MAX, EVENT_LENGTH_MAX, MESSAGE_MAX_BYTES } from "../limits.ts";
import type { FanOut, Listener, Topic } from "./topic.ts";

/** Body of a broadcast, for the endpoint and `app.broadcast`. */
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

/** Broadcasts on all channels. */
export class Broadcasts {
  readonly #topics: FanOut;
  readonly #onSent: (channel: string) => void;
  /** Topics by channel; only channels with subscribers have one. */
  readonly #channels = new Map<string, Topic>();

  /** `onSent` is called for each message that subscribers are sent. */
  constructor(topics: FanOut, onSent: (channel: string) => void) {
    this.#topics = topics;
    this.#onSent = onSent;
  }

  /** Starts sending to this listener. When called again, continues with the listener's current user. */
  listen(name: string, listener: Listener): void {
    const topic = this.#channels.get(name) ?? this.#topics.topic();
    this.#channels.set(name, topic);
    topic.join(listener);
  }

  unlisten(name: string, listener: Listener): void {
    const topic = this.#channels.get(name);
    topic?.leave(listener);
    if (topic?.size === 0) this.#channels.delete(name);
  }

  /** Holds the channel's messages until the returned function is called. */
  hold(name: string): () => void {
    return this.#channels.get(name)?.hold() ?? (() => {});
  }

  /** Sends to every subscriber of the channel except `except`. false: not sent, because too much waits there. */
  send({ channel, event, payload }: Broadcast, except: Listener | null = null): boolean {
    const topic = this.#channels.get(channel);
    if (topic === undefined) return true;
    if (topic.isBehind) return false;
    topic.publish(JSON.stringify({ type: "broadcast_event", channel, event, data: payload }), except);
    this.#onSent(channel);
    return true;
  }
}

/** Returns the error for a broadcast that `Broadcasts.send` has refused. */
export const channelIsBusy = (): AppError =>
  new AppError(503, "The channel has more to send than it can", { headers: { "retry-after": "1" } });

/** Checks the size of a payload. Errors: 413 for one over MESSAGE_MAX_BYTES. */
export function checkPayload({ payload }: Broadcast): void {
  if (Buffer.byteLength(JSON.stringify(payload)) > MESSAGE_MAX_BYTES) {
    throw tooLarge(`payload must have at most ${MESSAGE_MAX_BYTES} bytes`);
  }
}
