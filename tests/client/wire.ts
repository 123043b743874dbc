import type { Runtime } from "../../src/client/runtime.ts";
import { systemRuntime } from "../../src/client/runtime.ts";

/** The time of a client that waits less: seconds are milliseconds times `1000 / speed`. */
export const fastRuntime = (speed: number): Runtime => ({
  ...systemRuntime,
  after: (delayMs, work) => systemRuntime.after(delayMs / speed, work),
});

export interface CountedRuntime extends Runtime {
  /** Timers that have been set, and have neither run nor been cancelled. */
  timers(): number;
}

export function countedRuntime(runtime: Runtime): CountedRuntime {
  const running = new Set<object>();
  return {
    ...runtime,
    timers: () => running.size,
    after(delayMs, work) {
      const timer = {};
      running.add(timer);
      const cancel = runtime.after(delayMs, () => {
        running.delete(timer);
        work();
      });
      return () => {
        running.delete(timer);
        cancel();
      };
    },
  };
}

/** A port that nothing listens on, for a server that comes back at the same address. */
export async function freePort(): Promise<number> {
  const server = Bun.serve({ port: 0, fetch: () => new Response() });
  const { port = 0 } = server;
  await server.stop(true);
  return port;
}

/** The network between a client and its server, as a class of WebSockets that can be cut or go silent. */
export interface Wire {
  readonly WebSocket: new (url: string) => WebSocket;
  /** All that were opened, the newest last. */
  readonly opened: readonly WebSocket[];
  /** Number of sockets that are open. */
  readonly open: number;
  /** Messages that were sent, parsed. */
  readonly sent: readonly { type: string; [member: string]: unknown }[];
  /** Number of messages that the client was given. */
  readonly received: number;
  /**
   * Returns when the server has sent every change that was committed before, for each subscription of the connection that is open,
   * and the client has it. Gives their number.
   */
  flushed(): Promise<number>;
  /** Ends what is open, as a router that restarts does. */
  cut(): void;
  /** From now on nothing arrives on what is open, in both directions, and nothing says so. */
  silence(): void;
}

export function createWire(): Wire {
  const opened: WebSocket[] = [];
  const silent = new WeakSet<WebSocket>();
  const sent: { type: string; [member: string]: unknown }[] = [];
  let received = 0;
  const openOnes = () => opened.filter(({ readyState }) => readyState < WebSocket.CLOSING);

  class WiredSocket extends WebSocket {
    #listener: WebSocket["onmessage"] = null;

    constructor(url: string) {
      super(url);
      opened.push(this);
      super.onmessage = (event) => {
        if (silent.has(this)) return;
        received++;
        this.#listener?.call(this, event);
      };
    }

    override get onmessage() {
      return this.#listener;
    }

    override set onmessage(listener: WebSocket["onmessage"]) {
      this.#listener = listener;
    }

    override send(text: string): void {
      if (silent.has(this)) return;
      sent.push(JSON.parse(text));
      super.send(text);
    }
  }

  return {
    WebSocket: WiredSocket,
    opened,
    get open() {
      return openOnes().length;
    },
    sent,
    get received() {
      return received;
    },
    async flushed() {
      const ids = new Set<unknown>();
      const from = sent.findLastIndex(({ type }) => type === "auth");
      for (const { type, id } of sent.slice(from)) {
        if (type === "subscribe") ids.add(id);
        if (type === "unsubscribe") ids.delete(id);
      }
      const [socket] = openOnes();
      for (const id of ids) await answered(socket, String(id));
      return ids.size;
    },
    cut() {
      for (const socket of openOnes()) socket.close();
    },
    silence() {
      for (const socket of openOnes()) silent.add(socket);
    },
  };
}

/** Asks for what a subscription has still to be sent, beside the client. */
function answered(socket: WebSocket | undefined, id: string): Promise<void> {
  if (socket === undefined) throw new Error("There is no connection");
  const requestId = crypto.randomUUID();
  return new Promise((resolve) => {
    const heard = ({ data }: MessageEvent) => {
      if (JSON.parse(data)["requestId"] !== requestId) return;
      socket.removeEventListener("message", heard);
      resolve();
    };
    socket.addEventListener("message", heard);
    WebSocket.prototype.send.call(socket, JSON.stringify({ type: "flush", id, requestId }));
  });
}
