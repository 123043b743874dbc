import type { JsonObject } from "../../kernel/json/json.ts";
import type { ClientContext } from "../context.ts";
import { ask } from "./ask.ts";
import { createTopic } from "./topic.ts";
import type { Broadcast } from "./types.ts";

type Listener = (payload: never) => void;

/** A broadcast channel. Nothing is sent before it is used. */
export function createBroadcast(context: ClientContext, name: string): Broadcast {
  const channel = `broadcast:${name}`;
  const listeners = new Set<{ event: string; listener: Listener }>();
  const watchers = new Set<() => void>();
  const topic = createTopic(context, channel, {
    onChange() {
      for (const watcher of [...watchers]) watcher();
    },
    messages: {
      broadcast_event(message) {
        for (const { event, listener } of [...listeners]) {
          // The type of the payload is the caller's.
          if (event === message["event"]) listener(message["data"] as never);
        }
      },
    },
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
      const entry = { event, listener: listener as Listener };
      listeners.add(entry);
      const end = topic.use();
      return () => {
        if (listeners.delete(entry)) end();
      };
    },
    subscribe(listener) {
      const own = () => listener();
      watchers.add(own);
      return () => void watchers.delete(own);
    },
  };
}
