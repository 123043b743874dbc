import type { JsonObject } from "../../kernel/json/json.ts";
import type { ClientContext } from "../context.ts";
import { createListeners, together } from "../listeners.ts";
import type { ServerMessage } from "../socket/types.ts";
import { PlatformError } from "../transport/errors.ts";
import { ask, createTopic } from "./topic.ts";
import type { Presence, PresentUser } from "./types.ts";

/** State that this client shows on a presence channel. */
interface Tracking {
  track(state: JsonObject): Promise<void>;
  untrack(): Promise<void>;
}

function createTracking(context: ClientContext, channel: string): Tracking {
  /** State to track; null: none. */
  let tracked: JsonObject | null = null;
  /** The state was sent once, so each new connection sends it again. */
  let isRepeated = false;
  let end: (() => void) | null = null;

  const stop = () => {
    tracked = null;
    isRepeated = false;
    end?.();
    end = null;
  };
  /** Keeps the connection open and repeats the state. */
  const keep = async () => {
    const socket = await context.socket();
    if (tracked === null || end !== null) return;
    end = together([
      socket.hold(),
      socket.onConnected(() => {
        if (isRepeated && tracked !== null) socket.send({ type: "track", channel, state: tracked });
      }),
      context.transport.onAuth(stop),
    ]);
  };
  return {
    async track(state) {
      tracked = state;
      await keep();
      // `untrack` was called meanwhile, and its message is sent first.
      if (tracked === null) return;
      try {
        const message = { type: "track", channel, state };
        await ask(context, message);
        isRepeated = tracked !== null;
      } catch (error) {
        // A lost connection is restored and the state sent again; a refusal is final.
        const isLost = error instanceof PlatformError && error.status === 0;
        if (isLost) isRepeated = tracked !== null;
        else if (tracked === state) stop();
        throw error;
      }
    },
    async untrack() {
      if (tracked === null) return;
      stop();
      await ask(context, { type: "untrack", channel });
    },
  };
}

/** Creates a presence channel. It connects on first use. */
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
