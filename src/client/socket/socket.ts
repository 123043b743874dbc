import { VERSION } from "../../kernel/version.ts";
import type { ClientContext } from "../context.ts";
import { createListeners, type Listeners, onWake } from "../listeners.ts";
import { jittered } from "../runtime.ts";
import type { PlatformError } from "../transport/errors.ts";
import { type Connection, connect } from "./connection.ts";
import type { ServerMessage, Socket, SocketStatus } from "./types.ts";

/** Delay after the last hold before the connection is closed. */
const IDLE_CLOSE_MS = 5_000;
/** Initial backoff of reconnects, with jitter; it doubles each time. */
const RECONNECT_MS = 400;
const RECONNECT_MAX_MS = 15_000;

const sockets = new WeakMap<object, Socket>();

/** Returns the client's socket. It opens nothing yet. */
export function socketOf(context: ClientContext): Socket {
  const known = sockets.get(context) ?? new SharedSocket(context, "/api/realtime");
  sockets.set(context, known);
  return known;
}

type Listener<Value> = (value: Value) => void;

/** Connection that reconnects automatically. It opens nothing before the first hold, and ends with the context. */
export class SharedSocket implements Socket {
  status: SocketStatus = "closed";
  error: PlatformError | null = null;
  readonly #context: ClientContext;
  readonly #path: string;
  readonly #byType = new Map<string, Listeners<[ServerMessage]>>();
  readonly #statusListeners = createListeners<[SocketStatus]>();
  readonly #connectedListeners = createListeners<[Connection]>();
  #connection: Connection | null = null;
  #holds = 0;
  /** Number of losses since the last connection. */
  #losses = 0;
  #isEnded = false;
  #cancelRetry: () => void = () => {};
  /** Cancels the end of an unheld connection. */
  #cancelEnd: () => void = () => {};
  #stopWaking: () => void = () => {};

  constructor(context: ClientContext, path: string) {
    this.#context = context;
    this.#path = path;
    const stopListening = context.transport.onAuth(() => {
      if (this.status !== "closed") this.#restart();
    });
    context.onClose(() => {
      stopListening();
      this.#isEnded = true;
      this.#holds = 0;
      this.#shut();
    });
  }

  subscribe(listener: Listener<SocketStatus>): () => void {
    return this.#statusListeners.add(listener);
  }

  hold(): () => void {
    let isHeld = true;
    this.#holds++;
    this.#cancelEnd();
    // Code that was still loading when the client was closed must not open a connection.
    if (this.status === "closed" && !this.#isEnded) this.#begin();
    return () => {
      if (!isHeld) return;
      isHeld = false;
      if (--this.#holds > 0 || this.status === "closed") return;
      this.#cancelEnd = this.#context.runtime.after(IDLE_CLOSE_MS, () => this.#shut());
    };
  }

  send(message: ServerMessage): void {
    if (this.status === "connected") this.#connection?.send(message);
  }

  on(type: string, listener: Listener<ServerMessage>): () => void {
    const listeners = this.#byType.get(type) ?? createListeners();
    this.#byType.set(type, listeners);
    return listeners.add(listener);
  }

  onConnected(listener: () => void): () => void {
    if (this.status === "connected") listener();
    return this.#connectedListeners.add((own) => {
      // An earlier listener may have ended the connection.
      if (this.#connection === own) listener();
    });
  }

  #become(status: SocketStatus, error: PlatformError | null = null): void {
    if (this.status === status && this.error === error) return;
    this.status = status;
    this.error = error;
    this.#statusListeners.tell(status);
  }

  #begin(): void {
    this.#stopWaking = onWake({
      isBack: () => (this.#connection === null ? this.#restart() : this.#connection.probe()),
      isLost: () => this.#connection?.probe(),
    });
    this.#become("connecting");
    this.#open();
  }

  #open(): void {
    this.#cancelRetry();
    const own = connect(
      { ...this.#context, version: VERSION, path: this.#path },
      {
        onMessage: (message) => this.#byType.get(message.type)?.tell(message),
        onOpen: () => {
          this.#losses = 0;
          this.#become("connected");
          this.#connectedListeners.tell(own);
        },
        onClosed: (error) => this.#lost(error),
      },
    );
    this.#connection = own;
  }

  #lost(error: PlatformError | null): void {
    const { runtime } = this.#context;
    this.#connection = null;
    if (this.#holds === 0) {
      this.#shut();
      return;
    }
    const longMs = Math.min(RECONNECT_MAX_MS, RECONNECT_MS * 2 ** this.#losses++);
    // The jitter prevents clients disconnected by a restart from reconnecting together.
    this.#cancelRetry = runtime.after(jittered(runtime, longMs), () => this.#open());
    this.#become("waiting", error);
  }

  /** Reconnects at once: as another user, or because the network is back. */
  #restart(): void {
    if (this.#holds === 0) {
      this.#shut();
      return;
    }
    this.#connection?.close();
    this.#losses = 0;
    this.#become("waiting");
    this.#open();
  }

  #shut(): void {
    this.#cancelRetry();
    this.#cancelEnd();
    this.#stopWaking();
    this.#stopWaking = () => {};
    this.#connection?.close();
    this.#connection = null;
    this.#losses = 0;
    this.#become("closed");
  }
}
