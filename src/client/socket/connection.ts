import type { ClientContext } from "../context.ts";
import { localError, type PlatformError } from "../transport/errors.ts";
import { type Heartbeat, startHeartbeat } from "./heartbeat.ts";
import { CLOSE_LOST, CONNECT_TIMEOUT_MS } from "./limits.ts";
import { createPace, type Pace } from "./pace.ts";
import type { ServerMessage } from "./types.ts";

/** What a connection tells. Each of the last two is called at most once, and nothing after `onClosed`. */
export interface ConnectionEvents {
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
      const message = `This client is of version ${version}, and the server of version ${theirs}: load the server's own client`;
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
      const message = "There is no WebSocket here: give the class of a package as the option webSocket";
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
