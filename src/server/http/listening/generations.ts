import type { Server } from "bun";
import type { Clock } from "../../../kernel/clock.ts";
import type { SocketHandler } from "../../sockets/socket-server.ts";
import { RETIRED_LISTENING_MAX, RETIRED_MAX, RETIREMENT_MS } from "../limits.ts";
import type { Steering } from "./steering.ts";

/** A server with one certificate. */
interface Generation<Data> {
  readonly server: Server<Data>;
  /** null where the system does not tell. */
  readonly socket: number | null;
  readonly retirement: Retirement;
  isListening: boolean;
}

/** Set: a newer server gets new connections, and those of this one are told to close with their next answer. */
export interface Retirement {
  isRetired: boolean;
}

type OpenServer<Data> = (retirement: Retirement) => Server<Data>;

/**
 * The servers of one port. Bun cannot change the certificate of a server, so a renewal opens another one on the same port. The
 * old one keeps its connections: WebSockets until they close, others until an answer or a pause ends them.
 */
export class Generations<Data = SocketHandler> {
  readonly #clock: Clock;
  readonly #steering: Steering | null;
  /** Oldest first; the last one gets new connections. */
  #known: Generation<Data>[] = [];
  /** Listening servers, in the order in which the system numbers them. */
  #group: Generation<Data>[] = [];
  readonly #timers = new Set<() => void>();

  constructor(clock: Clock, steering: Steering | null) {
    this.#clock = clock;
    this.#steering = steering;
  }

  get current(): Server<Data> | null {
    return this.#known.at(-1)?.server ?? null;
  }

  /** Also those that no longer listen and still have connections. */
  get servers(): readonly Server<Data>[] {
    return this.#known.map(({ server }) => server);
  }

  /** Opens a server, which gets all new connections from now on. Errors: those of `open`; nothing has changed then. */
  open(open: OpenServer<Data>): Server<Data> {
    const before = this.#steering?.listening() ?? new Set();
    const retirement = { isRetired: false };
    const server = open(retirement);
    const [socket = null] = [...(this.#steering?.listening() ?? [])].filter((each) => !before.has(each));
    const previous = this.#known.at(-1);
    const generation = { server, socket, retirement, isListening: true };
    this.#known.push(generation);
    this.#group.push(generation);
    if (previous !== undefined) this.#retire(previous, this.#steer());
    return server;
  }

  /** Cancels what is left to do: the servers are stopped. */
  end(): void {
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
  }

  #retire(generation: Generation<Data>, isSteered: boolean): void {
    generation.retirement.isRetired = true;
    // By then every connection has had an answer that closes it, or was idle for so long that Bun has closed it.
    if (isSteered) this.#later(() => this.#unlisten(generation));
    else this.#unlisten(generation);
    const listening = this.#known.filter((each) => each.retirement.isRetired && each.isListening);
    for (const each of listening.slice(0, -RETIRED_LISTENING_MAX)) this.#unlisten(each);
    for (const each of this.#known.slice(0, -RETIRED_MAX)) void each.server.stop(true);
  }

  #later(work: () => void): void {
    const cancel = this.#clock.after(RETIREMENT_MS, () => {
      this.#timers.delete(cancel);
      work();
    });
    this.#timers.add(cancel);
  }

  #unlisten(generation: Generation<Data>): void {
    if (!generation.isListening) return;
    generation.isListening = false;
    void generation.server.stop(false).then(() => {
      this.#known = this.#known.filter((each) => each !== generation);
    });
    // The system fills a gap with the last socket, so this does too.
    const place = this.#group.indexOf(generation);
    const last = this.#group.pop();
    if (last !== undefined && last !== generation) this.#group[place] = last;
    this.#steer();
  }

  /** Whether new connections go to the current server alone. */
  #steer(): boolean {
    const current = this.#known.at(-1);
    if (this.#steering === null || current === undefined || current.socket === null) return false;
    return this.#steering.steer(current.socket, this.#group.indexOf(current));
  }
}
