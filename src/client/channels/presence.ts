import type { ClientContext } from "../context.ts";
import { createListeners } from "../listeners.ts";
import type { ServerMessage } from "../socket/types.ts";
import { createTopic } from "./topic.ts";
import { createTracking } from "./tracking.ts";
import type { Presence, PresentUser } from "./types.ts";

/** A presence channel. Nothing is sent before it is used. */
export function createPresence(context: ClientContext, name: string): Presence {
  const channel = `presence:${name}`;
  const listeners = createListeners();
  let users: readonly PresentUser[] = [];

  const replace = (next: readonly PresentUser[]) => {
    users = next;
    listeners.tell();
  };
  const userOf = ({ userId, connectionId, state }: ServerMessage) => ({ userId, connectionId, state }) as PresentUser;
  const without = ({ connectionId }: ServerMessage) => users.filter((user) => user.connectionId !== connectionId);
  const put = (message: ServerMessage) => {
    const user = userOf(message);
    const isNew = users.every(({ connectionId }) => connectionId !== user.connectionId);
    const next = isNew ? [...users, user] : users.map((one) => (one.connectionId === user.connectionId ? user : one));
    replace(next);
  };
  const topic = createTopic(context, channel, {
    onChange() {
      if (topic.status === "denied") users = [];
      listeners.tell();
    },
    messages: {
      presence_sync: (message) => replace((message["users"] as ServerMessage[]).map(userOf)),
      presence_join: put,
      presence_update: put,
      presence_leave: (message) => replace(without(message)),
    },
  });

  return {
    get status() {
      return topic.status;
    },
    get error() {
      return topic.error;
    },
    get users() {
      return users;
    },
    subscribe(listener) {
      const remove = listeners.add(listener);
      const end = topic.use();
      return () => {
        if (!remove()) return;
        end();
        if (listeners.size === 0) users = [];
      };
    },
    ...createTracking(context, channel),
  };
}
