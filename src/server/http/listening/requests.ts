import type { BunRequest, Server } from "bun";
import { badRequest } from "../../../kernel/errors.ts";
import type { MaybePromise } from "../../../kernel/maybe-promise.ts";
import type { SocketHandler } from "../../sockets/socket-server.ts";

/** The index from which Elysia searches a URL for its path, with its option `standardHostname`, and without it. */
const PATH_AT_MIN = { https: 11, http: 7 } as const;

/**
 * Returns Elysia's options for a server under this listener. Elysia's default skips the first 11 characters of a URL, which are
 * more than `http://a/` has; the alternative, 7, ends within `https://`.
 */
export const hostnameOptions = ({ isTls }: { isTls: boolean }) => ({ standardHostname: isTls });

/** The status of an answer that upgrades to a WebSocket. */
const SWITCHED = 101;

export type NativeHandler = (request: BunRequest) => MaybePromise<Response>;

/** Handlers by path, in the syntax of Bun's router, and method. */
export type NativeRoutes = Readonly<Record<string, Readonly<Record<string, NativeHandler>>>>;

type Fetch = (request: Request) => MaybePromise<Response>;

/** Facts about requests beyond their content: original, server, hold. */
export class Requests {
  readonly #originals = new WeakMap<Request, Request>();
  /** Servers of requests that another server than the current one received. */
  readonly #owners = new WeakMap<Request, Server<SocketHandler>>();
  readonly #pathAtMin: number;
  readonly #scheme: string;
  #knownOrigin: string | null = null;
  #knownHost: string | null = null;

  constructor({ isTls }: { isTls: boolean }) {
    this.#pathAtMin = isTls ? PATH_AT_MIN.https : PATH_AT_MIN.http;
    this.#scheme = isTls ? "https://" : "http://";
  }

  /** Returns the request as Bun received it. */
  originalOf(request: Request): Request {
    return this.#originals.get(request) ?? request;
  }

  /** Returns the server that received the request; null: the current one. */
  ownerOf(request: Request): Server<SocketHandler> | null {
    return this.#owners.get(request) ?? null;
  }

  /**
   * Normalizes the host. A request without a readable `Host` (HTTP/1.0), and with TLS one to a host of one or two characters, is
   * treated as one to `localhost`. Errors: 400 for two `Host` headers, which Bun joins by a comma: a proxy may route by the other
   * one. [HT21]
   */
  withHost(request: Request): Request {
    if (request.headers.get("host")?.includes(",") === true)
      throw badRequest("The request has more than one Host header");
    const { url } = request;
    if (this.#knownOrigin !== null && url.startsWith(this.#knownOrigin)) return request;
    const schemeEnd = url.startsWith("https:") ? "https://".length : "http://".length;
    const pathAt = url.startsWith("/") ? 0 : url.indexOf("/", schemeEnd);
    const isOwnScheme = url.startsWith(this.#scheme);
    if (isOwnScheme && pathAt >= this.#pathAtMin && URL.canParse(url)) {
      this.#knownOrigin = url.slice(0, pathAt + 1);
      return request;
    }
    // Between nodes everything is HTTPS: there, the scheme says nothing about the client's.
    const host = !isOwnScheme && pathAt > schemeEnd && URL.canParse(url) ? url.slice(schemeEnd, pathAt) : "localhost";
    const complete = new Request(`${this.#scheme}${host}${url.slice(pathAt)}`, request);
    this.#originals.set(complete, request);
    return complete;
  }

  /**
   * Builds routes for Bun's own router: their handlers answer requests that need nothing more, and `serve` answers the others. `isLast`:
   * whether the connection of the request ends with its answer. `leave` holds answers.
   */
  native(
    routes: NativeRoutes,
    { isLast, serve, leave }: { isLast: () => boolean; serve: Fetch; leave: (handle: NativeHandler) => NativeHandler },
  ) {
    const guarded = (unheld: NativeHandler) => {
      const handle = leave(unheld);
      return (request: BunRequest, receiver: Server<SocketHandler>): MaybePromise<Response> => {
        if (isLast()) return this.answerLast(request, receiver, serve);
        // Most requests have the same host, and the header is read more quickly than the URL.
        const host = request.headers.get("host");
        if (host === null || host !== this.#knownHost) {
          const complete = this.withHost(request);
          if (complete !== request) return serve(complete);
          this.#knownHost = host;
        }
        return handle(request);
      };
    };
    return mapValues(routes, (methods) => mapValues(methods, guarded));
  }

  /** Answers and closes the connection: the next request then comes to another server, or to another process. */
  async answerLast(request: Request, receiver: Server<SocketHandler>, serve: Fetch): Promise<Response> {
    const complete = this.withHost(request);
    this.#owners.set(complete, receiver);
    const response = await serve(complete);
    if (response.status !== SWITCHED) response.headers.set("connection", "close");
    return response;
  }
}

const mapValues = <From, To>(values: Readonly<Record<string, From>>, map: (value: From) => To): Record<string, To> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]));
