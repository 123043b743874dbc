import type { ClientContext } from "../context.ts";
import { together } from "../listeners.ts";
import type { ServerMessage } from "../socket/types.ts";
import { deniedError, type PlatformError } from "../transport/errors.ts";
import { lostError, socketError } from "./errors.ts";
import type { ChannelStatus } from "./types.ts";

/** A subscription to a presence or broadcast channel, which is there while somebody uses it. */
export interface Topic {
  readonly status: ChannelStatus;
  readonly error: PlatformError | null;
  /** Follows the channel until the function is called. */
  use(): () => void;
}

interface Events {
  /** The status or the error has changed. */
  onChange(): void;
  /** What to do with messages of the channel, by their types. */
  messages: Readonly<Record<string, (message: ServerMessage) => void>>;
}

export function createTopic(context: ClientContext, channel: string, { onChange, messages }: Events): Topic {
  let status: ChannelStatus = "loading";
  let error: PlatformError | null = null;
  let uses = 0;
  let end: (() => void) | null = null;

  const become = (next: ChannelStatus, because: PlatformError | null = null) => {
    if (status === next && error === because) return;
    status = next;
    error = because;
    onChange();
  };
  const errorOf = (message: ServerMessage) => socketError(message, context.transport.userId());
  const begin = async () => {
    const socket = await context.socket();
    if (uses === 0 || end !== null) return;
    const own = (listener: (message: ServerMessage) => void) => (message: ServerMessage) => {
      if (message["channel"] === channel) listener(message);
    };
    const stop = together([
      ...Object.entries(messages).map(([type, listener]) => socket.on(type, own(listener))),
      socket.on(
        "subscribed",
        own(() => become("live")),
      ),
      socket.on(
        "error",
        own((message) => {
          // Errors of other messages about the channel have the id that those carry.
          if (message["requestId"] === undefined && message["id"] === undefined) become("denied", errorOf(message));
        }),
      ),
      socket.on("auth_refreshed", ({ revokedChannels }) => {
        if ((revokedChannels as readonly string[]).includes(channel))
          become("denied", deniedError(context.transport.userId()));
      }),
      socket.subscribe((next) => {
        if (next === "connected") return;
        if (socket.error !== null) become("denied", socket.error);
        else if (status === "live") become("offline");
      }),
      socket.onConnected(() => socket.send({ type: "subscribe", channel })),
      socket.hold(),
    ]);
    end = () => {
      socket.send({ type: "unsubscribe", channel });
      stop();
    };
  };
  return {
    get status() {
      return status;
    },
    get error() {
      return error;
    },
    use() {
      let isUsed = true;
      if (++uses === 1) {
        begin().catch((cause: unknown) => become("offline", lostError(String(cause))));
      }
      return () => {
        if (!isUsed) return;
        isUsed = false;
        if (--uses > 0) return;
        end?.();
        end = null;
        status = "loading";
        error = null;
      };
    },
  };
}
