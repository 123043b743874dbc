import type { Server } from "bun";
import type { Clock } from "../../../kernel/clock.ts";
import type { MaybePromise } from "../../../kernel/maybe-promise.ts";
import { endsWithin } from "../../../kernel/time/stop.ts";
import { FarSockets } from "../../sockets/far/far-sockets.ts";
import { FRAME_HEAD_MAX } from "../../sockets/far/frames.ts";
import type { OwnSocket, Receiver, SocketHandler, SocketServerOwner } from "../../sockets/socket-server.ts";
import { REQUEST_MAX_BYTES } from "../limits.ts";
import { INNER_HEADER, type InnerRequest, readInner } from "./inner-request.ts";

/** Options of the server that takes requests from workers, or from other nodes. */
export interface InnerOptions {
  clock: Clock;
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
/** The time that a stop waits for a worker to get its last frames. */
const LAST_FRAMES_MAX_MS = 500;
/** Bytes that wait for a worker from which its link is ended, with the sockets that it holds. */
const LINK_WAITING_MAX_BYTES = 64 * 1024 * 1024;

/** The length of the number of a question whether everything has arrived, in the payload of a ping. */
const QUESTION_LENGTH = 4;

/** The end of a worker's link. */
class Link implements SocketHandler {
  readonly sockets: FarSockets;
  #socket: OwnSocket | null = null;
  #lastQuestion = 0;
  /** Questions whether everything has arrived, by the numbers in their pings. */
  readonly #questions = new Map<number, () => void>();

  constructor(parts: Omit<ConstructorParameters<typeof FarSockets>[0], "send">) {
    this.sockets = new FarSockets({ ...parts, send: (frame) => void this.#socket?.send(frame) });
  }

  begin(socket: OwnSocket): void {
    this.#socket = socket;
  }

  message(_socket: unknown, frame: string | Buffer): void {
    this.sockets.receive(frame);
  }

  /** Resolves when the worker has got everything that was sent before, or the link has ended. */
  arrived(): Promise<void> {
    const socket = this.#socket;
    if (socket === null) return Promise.resolve();
    return new Promise((resolve) => {
      this.#lastQuestion = (this.#lastQuestion + 1) >>> 0;
      this.#questions.set(this.#lastQuestion, resolve);
      const number = Buffer.alloc(QUESTION_LENGTH);
      number.writeUInt32LE(this.#lastQuestion);
      socket.ping(number);
    });
  }

  answered(number: Buffer): void {
    if (number.byteLength !== QUESTION_LENGTH) return;
    const question = number.readUInt32LE();
    this.#questions.get(question)?.();
    this.#questions.delete(question);
  }

  end(): void {
    this.#socket?.terminate();
    this.#socket = null;
    this.sockets.end();
    for (const resolve of this.#questions.values()) resolve();
    this.#questions.clear();
  }
}

/**
 * Takes requests from the workers, or from other nodes, and answers them like those of the public port. They hold WebSockets for this
 * process, on one link each, or relay them.
 */
export class InnerServer implements Receiver {
  readonly isRelayed = true;
  readonly #server: Server<SocketHandler>;
  readonly #options: InnerOptions;
  readonly #requests = new WeakMap<Request, InnerRequest>();
  /** Answers to upgrades, by worker and request. */
  readonly #answers = new Map<string, Response>();
  /** Headers of the answers to requests for sockets that a worker holds. */
  readonly #upgraded = new WeakMap<Request, Readonly<Record<string, string>>>();
  readonly #links = new Map<number, Link>();
  readonly #websocket: SocketServerOwner["handlers"];

  constructor(
    options: InnerOptions,
    serving: {
      websocket: SocketServerOwner["handlers"];
      serve: (request: Request) => MaybePromise<Response>;
      failure: (cause: unknown) => Response;
    },
  ) {
    this.#options = options;
    this.#websocket = serving.websocket;
    const { at } = options;
    this.#server = Bun.serve<SocketHandler>({
      // With `ca`, a connection is refused in its handshake unless its end proves to have a certificate of that issuer.
      ...("unix" in at ? at : { ...at, tls: { ...at.tls, requestCert: true } }),
      // Bun's types have it for ports alone. A worker closes the connections of its clients itself, after its own timeout.
      ...({ idleTimeout: 0 } satisfies { idleTimeout: number } as object),
      maxRequestBodySize: REQUEST_MAX_BYTES,
      fetch: (request) => this.#answer(request, serving.serve),
      websocket: this.#withLinks(serving.websocket),
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
    if (inner === undefined) return false;
    if (inner.socket !== null) {
      const isHeld =
        options.data.mayBeFar === true && this.#links.get(inner.worker)?.sockets.accept(inner.socket, options.data);
      if (isHeld === true) this.#upgraded.set(request, options.headers);
      return isHeld === true;
    }
    if (!this.#server.upgrade(request, options)) return false;
    this.#keep(inner, new Response(null, { status: 204, headers: options.headers }));
    return true;
  }

  /** Resolves when all who hold sockets have got everything that was sent to those; the link of one that has not, after this time, ends. */
  async arrived(withinMs: number): Promise<void> {
    const { clock } = this.#options;
    const links = [...this.#links.values()];
    const all = links.map(async (link) => {
      if (!(await endsWithin(link.arrived(), withinMs, clock))) link.end();
    });
    await Promise.all(all);
  }

  /** Requests that are not answered yet. */
  get pendingRequests(): number {
    return this.#server.pendingRequests;
  }

  publish(topic: string, message: string | Uint8Array | ArrayBuffer): number {
    if (typeof message === "string") for (const { sockets } of this.#links.values()) sockets.publish(topic, message);
    return this.#server.publish(topic, message);
  }

  async stop(isAtOnce?: boolean): Promise<void> {
    // Sockets that are held have been closed, with a code that their clients are to get.
    await this.arrived(LAST_FRAMES_MAX_MS);
    await this.#server.stop(isAtOnce);
  }

  async #answer(request: Request, serve: (request: Request) => MaybePromise<Response>): Promise<Response> {
    const isUpgrade = request.headers.get("upgrade") !== null;
    const inner = readInner(request, this.#options.secret);
    if (inner === null) return new Response(null, { status: 403 });
    if (inner.id < 0) return this.#taken({ ...inner, id: -inner.id });
    if (inner.id === 0 && isUpgrade) return this.#openLink(request, inner);
    if (inner.id === 0) return this.#options.told?.(request, inner) ?? new Response(null, { status: 404 });
    this.#requests.set(request, inner);
    const response = await serve(request);
    const headers = this.#upgraded.get(request);
    if (headers !== undefined)
      return new Response(null, { status: 204, headers: { ...headers, [INNER_HEADER]: "held" } });
    if (!isUpgrade || response.status === SWITCHED) return response;
    this.#keep(inner, response);
    return new Response(null, { status: 400 });
  }

  /** Returns the handlers of WebSockets, with those of links. */
  #withLinks(handlers: SocketServerOwner["handlers"]): Bun.WebSocketHandler<SocketHandler> {
    return {
      ...handlers,
      maxPayloadLength: handlers.maxPayloadLength + FRAME_HEAD_MAX,
      backpressureLimit: LINK_WAITING_MAX_BYTES,
      open: (socket) => (socket.data instanceof Link ? socket.data.begin(socket) : handlers.open(socket)),
      message: (socket, message) =>
        socket.data instanceof Link ? socket.data.message(socket, message) : handlers.message(socket, message),
      close: (socket, code, reason) =>
        socket.data instanceof Link ? socket.data.end() : handlers.close(socket, code, reason),
      drain: (socket) => (socket.data instanceof Link ? undefined : handlers.drain(socket)),
      ping: (socket) => (socket.data instanceof Link ? undefined : handlers.ping(socket)),
      pong: (socket, report) =>
        socket.data instanceof Link ? socket.data.answered(report) : handlers.pong(socket, report),
    };
  }

  #openLink(request: Request, { worker }: InnerRequest): Response {
    const link = new Link({
      events: this.#websocket,
      publishElsewhere: (topic, message) => {
        for (const other of this.#links.values()) if (other !== link) other.sockets.publish(topic, message);
      },
    });
    if (!this.#server.upgrade(request, { data: link })) return new Response(null, { status: 400 });
    this.#links.get(worker)?.end();
    this.#links.set(worker, link);
    return new Response(null, { status: SWITCHED });
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
