import type { ClientContext } from "../context.ts";
import type { Runtime } from "../runtime.ts";
import { localError, type PlatformError } from "../transport/errors.ts";
import type { ServerMessage } from "./types.ts";

/**
 * A connection without a message for one beat is asked by a ping, and counts as lost after one more and a half without an
 * answer: within 10 s together.
 */
const BEAT_MS = 3_000;
const PONG_TIMEOUT_MS = 3_500;
/** Presence ends on the server without pings, however much else is received. */
const PING_EVERY_BEATS = 8;
/** After the browser says that it has lost the network, or that the page is seen again. */
const PROBE_TIMEOUT_MS = 2_000;

/** Finds out that a connection is lost, although nothing has closed it. */
interface Heartbeat {
  /** Something was received. */
  heard(): void;
  /** Asks at once, and waits for less time. */
  probe(): void;
  stop(): void;
}

/** Counts beats instead of reading the clock, which may be changed while the connection is open. */
function startHeartbeat(
  runtime: Runtime,
  { ping, onBeat, onLost }: { ping: () => void; onBeat: () => void; onLost: () => void },
): Heartbeat {
  let hasHeard = true;
  let beatsSincePing = 0;
  let isAsking = false;
  let cancel: () => void = () => {};

  const ask = (timeoutMs: number) => {
    isAsking = true;
    hasHeard = false;
    beatsSincePing = 0;
    ping();
    cancel = runtime.after(timeoutMs, onLost);
  };
  const beat = () => {
    onBeat();
    if (!hasHeard || ++beatsSincePing >= PING_EVERY_BEATS) return ask(PONG_TIMEOUT_MS);
    hasHeard = false;
    cancel = runtime.after(BEAT_MS, beat);
  };
  cancel = runtime.after(BEAT_MS, beat);
  return {
    heard() {
      hasHeard = true;
      if (!isAsking) return;
      isAsking = false;
      cancel();
      cancel = runtime.after(BEAT_MS, beat);
    },
    probe() {
      cancel();
      ask(PROBE_TIMEOUT_MS);
    },
    stop: () => cancel(),
  };
}

/** Messages at once, and then in a second: below what the server accepts from one connection. */
const MESSAGES_AT_ONCE = 60;
const MESSAGES_PER_SECOND = 60;
/** Messages that wait for their turn. Beyond it the oldest are dropped, as the server drops those over its rate. */
const WAITING_MESSAGES_MAX = 1_000;

const SECOND_PARTS = 10;

/** Sends texts in order, at a pace that the server accepts: a page that comes back subscribes to 200 channels at once. */
interface Pace {
  send(text: string): void;
  stop(): void;
}

function createPace(runtime: Runtime, sendNow: (text: string) => void): Pace {
  let waiting: string[] = [];
  let allowed = MESSAGES_AT_ONCE;
  let cancel: (() => void) | null = null;

  const refill = () => {
    cancel = null;
    allowed = Math.min(MESSAGES_AT_ONCE, allowed + MESSAGES_PER_SECOND / SECOND_PARTS);
    const now = waiting.slice(0, allowed);
    waiting = waiting.slice(now.length);
    allowed -= now.length;
    for (const text of now) sendNow(text);
    refillLater();
  };
  const refillLater = () => {
    if (allowed < MESSAGES_AT_ONCE) cancel ??= runtime.after(1000 / SECOND_PARTS, refill);
  };
  return {
    send(text) {
      if (waiting.length > 0 || allowed < 1) {
        waiting.push(text);
        if (waiting.length > WAITING_MESSAGES_MAX) waiting.shift();
      } else {
        allowed--;
        sendNow(text);
      }
      refillLater();
    },
    stop: () => cancel?.(),
  };
}

/**
 * The close code of a connection that does not answer: a room keeps the place of its player, as it does not where a client closes
 * without a code.
 */
const CLOSE_LOST = 4900;
/** From the start of a connection to the answer to `auth`. */
const CONNECT_TIMEOUT_MS = 8_000;

/** What a connection tells. Each of the last two is called at most once, and nothing after `onClosed`. */
interface ConnectionEvents {
  onMessage(message: ServerMessage): void;
  /** It is authenticated. */
  onOpen(): void;
  /** `error`: the server cannot be used with this client, or not by this user. null: it was lost. */
  onClosed(error: PlatformError | null): void;
}

/** One WebSocket, from its start to its loss. */
export interface Connection {
  send(message: object): void;
  /** Asks at once whether the connection is still there. */
  probe(): void;
  /** Ends it; `onClosed` is not called. */
  close(): void;
}

type Parts = Pick<ClientContext, "options" | "runtime" | "transport"> & { version: string; path: string };

const majorOf = (version: string): string => version.split(".", 1)[0] ?? "";

/** Connects as the user of now. */
export function connect({ options, runtime, transport, version, path }: Parts, events: ConnectionEvents): Connection {
  let socket: WebSocket | null = null;
  let heartbeat: Heartbeat | null = null;
  let pace: Pace | null = null;
  let sentToken: string | null = null;
  let isEnded = false;

  const end = (code?: number) => {
    isEnded = true;
    cancelTimeout();
    heartbeat?.stop();
    pace?.stop();
    if (socket === null) return;
    socket.onmessage = null;
    socket.onclose = null;
    socket.onerror = null;
    const own = socket;
    // A WebSocket that is still connecting reports an error when it is closed.
    if (own.readyState === 0) own.onopen = () => own.close();
    else own.close(code);
  };
  const lose = (error: PlatformError | null = null) => {
    if (isEnded) return;
    end(CLOSE_LOST);
    events.onClosed(error);
  };
  const sendNow = (message: object) => socket?.send(JSON.stringify(message));
  const authenticate = (token: string | null) => {
    sentToken = token;
    sendNow(token === null ? { type: "auth", anonymous: true } : { type: "auth", token });
  };
  /** The server judges by the newest claims, and a token that is kept up to date is at hand when the connection is lost. */
  const renew = async () => {
    const token = await transport.token().catch(() => sentToken);
    if (!isEnded && token !== null && token !== sentToken) authenticate(token);
  };
  const opened = ({ version: theirs }: ServerMessage) => {
    cancelTimeout();
    if (typeof theirs === "string" && majorOf(theirs) !== majorOf(version)) {
      const message = `Client of version ${version}, and the server of version ${theirs}: use the server's client`;
      return lose(localError("invalid", message));
    }
    pace = createPace(runtime, (text) => socket?.send(text));
    heartbeat = startHeartbeat(runtime, {
      ping: () => sendNow({ type: "ping" }),
      onBeat: () => void renew(),
      onLost: () => lose(),
    });
    events.onOpen();
  };
  const refused = async (message: string) => {
    // A request with the same token finds out whether it is the session that has ended.
    if (sentToken !== null) await transport.request("GET", "/api/auth/me").catch(() => {});
    lose(localError("unauthenticated", message));
  };
  const received = (message: ServerMessage) => {
    heartbeat?.heard();
    if (message.type === "auth_success") opened(message);
    else if (message.type === "auth_error" || message["code"] === "AUTH_FAILED")
      void refused(String(message["message"]));
    else if (pace !== null && message.type !== "pong") events.onMessage(message);
  };
  const open = async () => {
    const token = await transport.token();
    if (isEnded) return;
    const { webSocket: WebSocketClass = globalThis.WebSocket } = options;
    if (WebSocketClass === undefined) {
      const message = "Give a class as the option webSocket";
      return lose(localError("invalid", message));
    }
    const own = new WebSocketClass(transport.url(path).replace(/^http/, "ws"));
    socket = own;
    own.onopen = () => authenticate(token);
    own.onmessage = ({ data }) => received(JSON.parse(String(data)));
    own.onclose = () => lose();
    own.onerror = () => lose();
  };

  const cancelTimeout = runtime.after(CONNECT_TIMEOUT_MS, () => lose());
  open().catch(() => lose());
  return {
    send: (message) => pace?.send(JSON.stringify(message)),
    probe: () => heartbeat?.probe(),
    close: () => end(),
  };
}
