import type { Server } from "bun";
import type { MaybePromise } from "../../../kernel/maybe-promise.ts";
import type { Receiver, SocketHandler } from "../../sockets/socket-server.ts";
import { REQUEST_MAX_BYTES } from "../limits.ts";
import { type InnerRequest, readInner } from "./inner-request.ts";

/** Options of the server that takes requests from workers, or from other nodes. */
export interface InnerOptions {
  /** A Unix socket, in a directory that only this account can enter, or a port for whoever proves to be a node. */
  at: { unix: string } | { hostname: string; port: number; tls: { cert: string; key: string; ca: string } };
  secret: string;
  /** Answers a message that is no client's request. Absent: there are none. */
  told?(request: Request, inner: InnerRequest): MaybePromise<Response>;
  /** Tells a worker whether it holds the connection of a request open. */
  hold(inner: InnerRequest, isHeld: boolean): void;
  /** Stops the workers; resolves when they have answered what they had begun. */
  stopped(): Promise<void>;
}

/** Answers to upgrades that are kept until their worker asks for them. Workers ask at once. */
const ANSWERS_MAX = 10_000;
/**
 * Takes requests from the workers, or from other nodes, and answers them like those of the public port. A WebSocket is upgraded here, and its worker passes
 * the messages on.
 */
export class InnerServer implements Receiver {
  readonly isRelayed = true;
  readonly #server: Server<SocketHandler>;
  readonly #options: InnerOptions;
  readonly #requests = new WeakMap<Request, InnerRequest>();
  /** Answers to upgrades, by worker and request. */
  readonly #answers = new Map<string, Response>();

  constructor(
    options: InnerOptions,
    serving: {
      websocket: Bun.WebSocketHandler<SocketHandler>;
      serve: (request: Request) => MaybePromise<Response>;
      failure: (cause: unknown) => Response;
    },
  ) {
    this.#options = options;
    const { at } = options;
    this.#server = Bun.serve<SocketHandler>({
      // With `ca`, a connection is refused in its handshake unless its end proves to have a certificate of that issuer.
      ...("unix" in at ? at : { ...at, tls: { ...at.tls, requestCert: true } }),
      // Bun's types have it for ports alone. A worker closes the connections of its clients itself, after its own timeout.
      ...({ idleTimeout: 0 } satisfies { idleTimeout: number } as object),
      maxRequestBodySize: REQUEST_MAX_BYTES,
      fetch: (request) => this.#answer(request, serving.serve),
      websocket: serving.websocket,
      error: serving.failure,
    });
  }

  /** Returns what a worker says of the request; undefined: it comes from the public port. */
  of(request: Request): InnerRequest | undefined {
    return this.#requests.get(request);
  }

  hold(inner: InnerRequest, isHeld: boolean): void {
    this.#options.hold(inner, isHeld);
  }

  /** Stops the workers; resolves when they have answered what they had begun. */
  stopped(): Promise<void> {
    return this.#options.stopped();
  }

  /** Upgrades a request, like a server. The worker gets the headers, which its WebSocket does not show. */
  upgrade(request: Request, options: { data: SocketHandler; headers: Readonly<Record<string, string>> }): boolean {
    const inner = this.#requests.get(request);
    if (inner === undefined || !this.#server.upgrade(request, options)) return false;
    this.#keep(inner, new Response(null, { status: 204, headers: options.headers }));
    return true;
  }

  publish(...message: Parameters<Receiver["publish"]>): number {
    return this.#server.publish(...message);
  }

  stop(isAtOnce?: boolean): Promise<void> {
    return this.#server.stop(isAtOnce);
  }

  async #answer(request: Request, serve: (request: Request) => MaybePromise<Response>): Promise<Response> {
    const isUpgrade = request.headers.get("upgrade") !== null;
    const inner = readInner(request, this.#options.secret);
    if (inner === null) return new Response(null, { status: 403 });
    if (inner.id < 0) return this.#taken({ ...inner, id: -inner.id });
    if (inner.id === 0) return this.#options.told?.(request, inner) ?? new Response(null, { status: 404 });
    this.#requests.set(request, inner);
    const response = await serve(request);
    if (!isUpgrade || response.status === SWITCHED) return response;
    this.#keep(inner, response);
    return new Response(null, { status: 400 });
  }

  #keep({ worker, id }: InnerRequest, answer: Response): void {
    for (const oldest of this.#answers.keys()) {
      if (this.#answers.size < ANSWERS_MAX) break;
      this.#answers.delete(oldest);
    }
    this.#answers.set(`${worker} ${id}`, answer);
  }

  #taken({ worker, id }: InnerRequest): Response {
    const key = `${worker} ${id}`;
    const answer = this.#answers.get(key) ?? new Response(null, { status: 503 });
    this.#answers.delete(key);
    return answer;
  }
}

/** The status of an answer that upgrades to a WebSocket. */
const SWITCHED = 101;
