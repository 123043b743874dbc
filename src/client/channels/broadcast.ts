import type { JsonObject } from "../../kernel/json/json.ts";
import type { ClientContext } from "../context.ts";
import { createListeners } from "../listeners.ts";
import { ask, createTopic } from "./topic.ts";
import type { Broadcast } from "./types.ts";

/** Creates a broadcast channel. It connects on first use. */
export function createBroadcast(context: ClientContext, name: string): Broadcast {
  const channel = `broadcast:${name}`;
  const events = createListeners<[event: unknown, payload: unknown]>();
  const { add: subscribe, tell: onChange } = createListeners();
  const topic = createTopic(context, channel, {
    onChange,
    messages: { broadcast_event: ({ event, data }) => events.tell(event, data) },
  });
  return {
    get status() {
      return topic.status;
    },
    get error() {
      return topic.error;
    },
    async send(event, payload: JsonObject = {}, { toSelf = false } = {}) {
      const message = { type: "broadcast", channel, event, data: payload, excludeSelf: !toSelf };
      await ask(context, message);
    },
    on(event, listener) {
      const remove = events.add((name, payload) => {
        // The type of the payload is the caller's.
        if (name === event) listener(payload as never);
      });
      const end = topic.use();
      return () => {
        if (remove()) end();
      };
    },
    subscribe,
  };
}
