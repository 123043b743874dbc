import type { ClientContext } from "../context.ts";
import { together } from "../listeners.ts";
import type { ServerMessage } from "../socket/types.ts";
import { deniedError, localError, type PlatformError, statusError } from "../transport/errors.ts";
import type { ChannelStatus } from "./types.ts";

/** HTTP statuses, by what the code of an error message contains. */
const STATUSES = [
  [/^AUTH_FAILED|AUTHENTICATED$|REVOKED$/, 401],
  [/DENIED$/, 403],
  [/^NO_/, 404],
  [/FULL$|JOINED$|^TOO_MANY/, 409],
  [/TOO_LARGE$/, 413],
  [/LIMITED$/, 429],
  [/INTERNAL/, 500],
] as const;

/** Returns the error that a WebSocket message describes to this user; null: nobody is signed in. */
export function socketError({ code, message }: ServerMessage, userId: string | null): PlatformError {
  const [, status = 400] = STATUSES.find(([known]) => known.test(String(code))) ?? [];
  return status === 403 && userId === null ? deniedError(null) : statusError(status, String(message));
}

export const lostError = (message: string): PlatformError => localError("network", message);

/** Timeout of a message, including the wait for a connection. */
const ANSWER_TIMEOUT_MS = 15_000;

/**
 * Sends a message once connected, and resolves when the server has acknowledged it. Never retried: if the connection is lost
 * before the acknowledgement, the outcome is unknown. Errors: `PlatformError`.
 */
export async function ask(context: ClientContext, message: { type: string; channel: string }): Promise<void> {
  const { runtime } = context;
  const socket = await context.socket();
  await context.session.ready;
  const requestId = runtime.uuid();
  const ends = [socket.hold()];
  let isSent = false;
  try {
    await new Promise<void>((resolve, reject) => {
      ends.push(
        socket.on("done", (answer) => {
          if (answer["requestId"] === requestId) resolve();
        }),
        socket.on("error", (answer) => {
          if (answer["requestId"] === requestId) reject(socketError(answer, context.transport.userId()));
        }),
        socket.subscribe((status) => {
          if (socket.error !== null) reject(socket.error);
          else if (isSent && status !== "connected") reject(lostError("The connection was lost before the answer"));
        }),
        // A message of one user is not sent as another one.
        context.transport.onAuth(() => reject(statusError(401, "Another user"))),
        runtime.after(ANSWER_TIMEOUT_MS, () => reject(lostError("The server cannot be reached"))),
        socket.onConnected(() => {
          if (isSent) return;
          isSent = true;
          socket.send({ ...message, requestId });
        }),
      );
    });
  } finally {
    for (const end of ends) end();
  }
}

/** Subscription to a presence or broadcast channel, active while in use. */
interface Topic {
  readonly status: ChannelStatus;
  readonly error: PlatformError | null;
  /** Follows the channel. Returns a function that ends this. */
  use(): () => void;
}

interface Events {
  /** Called after changes of the status or the error. */
  onChange(): void;
  /** Handlers of the channel's messages, by type. */
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
          // Errors about a single message carry its id; those without one are about the channel.
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
