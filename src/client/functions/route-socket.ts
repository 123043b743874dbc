import type { ClientContext } from "../context.ts";
import { readText } from "./content.ts";

type Listener = (event: Event & { data?: unknown }) => void;

const parsed = (data: unknown): unknown => {
  if (data === "null") return null;
  return typeof data === "string" ? readText(data) : data;
};

/** A message with its content. */
const heard = (event: Parameters<Listener>[0]) =>
  event.type === "message"
    ? ({ ...event, type: "message", data: parsed(event.data), rawData: event.data } as never)
    : event;

/** A WebSocket of a route, with the members of Eden's. */
class RouteSocket {
  readonly url: string;
  readonly ws: WebSocket;
  readonly on = this.addEventListener;
  readonly off = this.removeEventListener;
  readonly #heard = new WeakMap<Listener, Listener>();

  constructor(ws: WebSocket) {
    this.ws = ws;
    this.url = ws.url;
  }

  /** Waits until the socket is open. */
  send(data: unknown): this {
    for (const one of Array.isArray(data) ? data : [data]) {
      const text = typeof one === "object" ? JSON.stringify(one) : String(one);
      if (this.ws.readyState === 0) this.ws.addEventListener("open", () => this.ws.send(text), { once: true });
      else this.ws.send(text);
    }
    return this;
  }

  subscribe(listener: Listener, options?: AddEventListenerOptions): this {
    return this.addEventListener("message", listener, options);
  }

  addEventListener(type: string, listener: Listener, options?: AddEventListenerOptions): this {
    // One for all types, as the socket itself tells them apart.
    const own: Listener = this.#heard.get(listener) ?? ((event) => listener(heard(event)));
    this.#heard.set(listener, own);
    this.ws.addEventListener(type, own as EventListener, options);
    return this;
  }

  removeEventListener(type: string, listener: Listener): this {
    this.ws.removeEventListener(type, (this.#heard.get(listener) ?? listener) as EventListener);
    return this;
  }

  close(): this {
    this.ws.close();
    return this;
  }
}

/** Pages cannot send headers with a WebSocket: the token is its protocol. */
export async function openRouteSocket(
  { transport, options }: ClientContext,
  path: readonly string[],
  given: unknown,
): Promise<RouteSocket> {
  // Without the token that it should have, the server refuses it, which the socket reports as any other refusal.
  const token = await transport.token().catch(() => "none");
  const { query = {} } = (given ?? {}) as { query?: Record<string, string> };
  const url = transport.url(`/api/functions/${path.join("/")}`, query).replace(/^http/, "ws");
  const { webSocket: WebSocketClass = globalThis.WebSocket } = options;
  return new RouteSocket(token === null ? new WebSocketClass(url) : new WebSocketClass(url, ["bearer", token]));
}
