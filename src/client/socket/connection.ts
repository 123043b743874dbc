import type { ClientContext } from "../context.ts";
import type { Runtime } from "../runtime.ts";
import { localError, type PlatformError } from "../transport/errors.ts";
import type { ServerMessage } from "./types.ts";

/**
 * Heartbeat interval. A connection that received nothing for one beat is pinged, and counts as lost after another one and a half
 * without a reply: within 10 s in total.
 */
const BEAT_MS = 3_000;
const PONG_TIMEOUT_MS = 3_500;
/** Presence on the server expires without pings, however much else the connection receives. */
const PING_EVERY_BEATS = 8;
/** Timeout of a probe, sent after the browser reports a lost network or a page that is visible again. */
const PROBE_TIMEOUT_MS = 2_000;

/** Detects a lost connection that was never closed. */
interface Heartbeat {
  /** Notes that something was received. */
  heard(): void;
  /** Pings at once, with a shorter timeout. */
  probe(): void;
  stop(): void;
}

/** Starts a heartbeat. It counts beats instead of reading the clock, which may be changed while the connection is open. */
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

/** Burst, and rate per second, of the token bucket: below what the server accepts from one connection. */
const MESSAGES_AT_ONCE = 60;
const MESSAGES_PER_SECOND = 60;
/** Bound of the queue. Beyond it the oldest messages are dropped, as the server drops those over its rate. */
const WAITING_MESSAGES_MAX = 1_000;

const SECOND_PARTS = 10;

/**
 * Throttle that sends texts in order, within the server's rate limit: a page that reconnects subscribes to 200 channels at once.
 */
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
 * Close code of an unresponsive connection. With it a room reserves the player's seat, which it does not if a client closes
 * without a code.
 */
const CLOSE_LOST = 4900;
/** Timeout from the start of a connection to the reply to `auth`. */
const CONNECT_TIMEOUT_MS = 8_000;

/** Events of a connection. The last two are called at most once each, and nothing after `onClosed`. */
interface ConnectionEvents {
  onMessage(message: ServerMessage): void;
  /** Called when the connection is authenticated. */
  onOpen(): void;
  /** Called when the connection ends. `error`: the server refuses this client, or this user; null: the connection was lost. */
  onClosed(error: PlatformError | null): void;
}

/** One WebSocket, from its start to its loss. */
export interface Connection {
  send(message: object): void;
  /** Checks at once whether the connection is alive. */
  probe(): void;
  /** Closes the connection without calling `onClosed`. */
  close(): void;
}

type Parts = Pick<ClientContext, "options" | "runtime" | "transport"> & { version: string; path: string };

const majorOf = (version: string): string => version.split(".", 1)[0] ?? "";

/** Connects as the current user. */
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
    // Closing a WebSocket that is still connecting would log an error.
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
  /** Sends fresh tokens: the server evaluates the newest claims, and a valid token is ready when the connection is lost. */
  const renew = async () => {
    const token = await transport.token().catch(() => sentToken);
    if (!isEnded && token !== null && token !== sentToken) authenticate(token);
  };
  const opened = ({ version: theirs }: ServerMessage) => {
    cancelTimeout();
    if (typeof theirs === "string" && majorOf(theirs) !== majorOf(version)) {
      const message = `Client version ${version}, server version ${theirs}: use the server's client`;
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
    // A request with the same token determines whether the session has ended.
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
