import type { Server } from "bun";
import type { Clock } from "../../../kernel/clock.ts";
import type { MaybePromise } from "../../../kernel/maybe-promise.ts";
import type { Receiver, SocketHandler } from "../../sockets/socket-server.ts";

/** Options of a server, as far as one on a port that is open already needs them. */
export interface LocalServing {
  fetch(request: Request, receiver: Server<SocketHandler>): MaybePromise<Response>;
  websocket: Bun.WebSocketHandler<SocketHandler>;
}

/** The port under a server. */
interface Port {
  server: Server<unknown>;
  /** Requests that the port answers without this server. */
  others(): number;
  /** Lets the port answer without this server from now on. */
  end(): void;
}

const LOOK_MS = 10;

/**
 * A server on a port that is open already: it answers what comes until it is stopped, and then the port does as before. So no connection
 * is lost where a process changes who answers.
 */
export class LocalServer implements Receiver {
  readonly serving: LocalServing;
  readonly #port: Port;
  readonly #clock: Pick<Clock, "after">;

  constructor(serving: LocalServing, port: Port, clock: Pick<Clock, "after">) {
    this.serving = serving;
    this.#port = port;
    this.#clock = clock;
  }

  /** The server as others see it: of its members, they use those that this class has. */
  get asServer(): Server<SocketHandler> {
    return this as unknown as Server<SocketHandler>;
  }

  get port(): number | undefined {
    return this.#port.server.port;
  }

  get url(): URL {
    return this.#port.server.url;
  }

  get pendingRequests(): number {
    return Math.max(0, this.#port.server.pendingRequests - this.#port.others());
  }

  answer(request: Request): MaybePromise<Response> {
    return this.serving.fetch(request, this.asServer);
  }

  requestIP(request: Request): ReturnType<Server<unknown>["requestIP"]> {
    return this.#port.server.requestIP(request);
  }

  timeout(request: Request, seconds: number): void {
    this.#port.server.timeout(request, seconds);
  }

  upgrade(request: Request, options: { data: SocketHandler; headers: Readonly<Record<string, string>> }): boolean {
    return this.#port.server.upgrade(request, options);
  }

  publish(...message: Parameters<Receiver["publish"]>): number {
    return this.#port.server.publish(...message);
  }

  /** Takes nothing more; resolves when everything that was begun is answered, or at once. */
  stop(isAtOnce = false): Promise<void> {
    this.#port.end();
    if (isAtOnce) return Promise.resolve();
    return new Promise((resolve) => {
      const look = (): void => {
        if (this.pendingRequests === 0) resolve();
        else this.#clock.after(LOOK_MS, look);
      };
      look();
    });
  }
}
