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
  /** Those that are open. */
  readonly open: number;
  /** What was sent, parsed. */
  readonly sent: readonly { type: string; [member: string]: unknown }[];
  /** Ends what is open, as a router that restarts does. */
  cut(): void;
  /** From now on nothing arrives on what is open, in both directions, and nothing says so. */
  silence(): void;
}

export function createWire(): Wire {
  const opened: WebSocket[] = [];
  const silent = new WeakSet<WebSocket>();
  const sent: { type: string; [member: string]: unknown }[] = [];
  const openOnes = () => opened.filter(({ readyState }) => readyState < WebSocket.CLOSING);

  class WiredSocket extends WebSocket {
    #listener: WebSocket["onmessage"] = null;

    constructor(url: string) {
      super(url);
      opened.push(this);
      super.onmessage = (event) => {
        if (!silent.has(this)) this.#listener?.call(this, event);
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
    cut() {
      for (const socket of openOnes()) socket.close();
    },
    silence() {
      for (const socket of openOnes()) silent.add(socket);
    },
  };
}
