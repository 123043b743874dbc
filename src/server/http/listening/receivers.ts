import type { ListeningServers, Receiver } from "../../sockets/socket-server.ts";
import type { InnerServer } from "../workers/inner-server.ts";
import type { Generations } from "./generations.ts";
import type { Requests } from "./requests.ts";

type Serving = ConstructorParameters<typeof InnerServer>[1];

/** Opens the server that takes requests from workers. */
export type OpenInner = (serving: Serving) => InnerServer;

/** The servers that receive requests: those of the port, and the one that takes what workers forward. */
export class Receivers implements ListeningServers {
  /** The servers of the port; null while not listening. */
  port: Generations | null = null;
  /** null: there are no workers. */
  inner: InnerServer | null = null;
  /** Answers the requests of workers; null while not listening. */
  serving: Serving | null = null;
  readonly #requests: Requests;
  readonly #idleTimeoutSeconds: number;

  constructor(requests: Requests, idleTimeoutSeconds: number) {
    this.#requests = requests;
    this.#idleTimeoutSeconds = idleTimeoutSeconds;
  }

  of(request: Request): Receiver | null {
    const isForwarded = this.inner?.of(this.#requests.originalOf(request)) !== undefined;
    if (isForwarded) return this.inner;
    return this.#requests.ownerOf(request) ?? this.port?.current ?? null;
  }

  originalOf(request: Request): Request {
    return this.#requests.originalOf(request);
  }

  all(): readonly Receiver[] {
    return [...(this.port?.servers ?? []), ...(this.inner === null ? [] : [this.inner])];
  }

  async refuse(): Promise<void> {
    const servers = this.port?.servers ?? [];
    // Workers need this process until they have answered, so what they forward is taken until then.
    await Promise.all([...servers.map((server) => server.stop(false)), this.inner?.stopped()]);
  }

  /** Returns the address of the client's connection. */
  peerOf(request: Request): string {
    const original = this.#requests.originalOf(request);
    return this.inner?.of(original)?.peer ?? this.port?.current?.requestIP(original)?.address ?? "127.0.0.1";
  }

  /** Holds a request open, or no longer. */
  hold(request: Request, isHeld: boolean): void {
    const original = this.#requests.originalOf(request);
    const forwarded = this.inner?.of(original);
    if (forwarded === undefined) this.port?.current?.timeout(original, isHeld ? 0 : this.#idleTimeoutSeconds);
    else this.inner?.hold(forwarded, isHeld);
  }

  /** Opens where workers forward requests to, once. */
  openInner(open: OpenInner): void {
    if (this.serving !== null) this.inner ??= open(this.serving);
  }

  end(): void {
    this.serving = null;
    this.port = null;
    this.inner = null;
  }
}
