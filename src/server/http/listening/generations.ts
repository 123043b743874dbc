import type { Server } from "bun";
import type { Clock } from "../../../kernel/clock.ts";
import type { SocketHandler } from "../../sockets/socket-server.ts";
import { RETIRED_MAX, RETIREMENT_MS } from "../limits.ts";

/** A server with one certificate. */
interface Generation {
  readonly server: Server<SocketHandler>;
  readonly retirement: Retirement;
}

/** The retirement of a server. Once it is set, a newer server exists, and this one closes connections after their next answer. */
export interface Retirement {
  isRetired: boolean;
}

type OpenServer = (retirement: Retirement) => Server<SocketHandler>;

/**
 * The servers of one port. Bun cannot change the certificate of a server, so a renewal opens another one on the same port. The old
 * one shares new connections with it for RETIREMENT_MS, and closes those in use after their next answer. When it then stops
 * listening, Bun closes idle connections, on which a client may be sending a request, and the system resets connections in the
 * accept queue: about three per renewal under load. WebSockets stay open.
 */
export class Generations {
  readonly #clock: Clock;
  /** Oldest first. A server is removed once it has stopped. */
  #known: Generation[] = [];
  readonly #timers = new Set<() => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get current(): Server<SocketHandler> | null {
    return this.#known.at(-1)?.server ?? null;
  }

  /** All servers, including those that no longer listen and still have connections. */
  get servers(): readonly Server<SocketHandler>[] {
    return this.#known.map(({ server }) => server);
  }

  /** Opens a server and retires the previous one. Errors: those of `open`, which leave everything unchanged. */
  open(open: OpenServer): void {
    const retirement = { isRetired: false };
    const server = open(retirement);
    const previous = this.#known.at(-1);
    this.#known.push({ server, retirement });
    if (previous !== undefined) this.#retire(previous);
    for (const each of this.#known.slice(0, -RETIRED_MAX)) void each.server.stop(true);
  }

  /** Cancels the pending timers once the servers are stopped. */
  end(): void {
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
  }

  #retire(generation: Generation): void {
    generation.retirement.isRetired = true;
    const cancel = this.#clock.after(RETIREMENT_MS, () => {
      this.#timers.delete(cancel);
      void generation.server.stop(false).then(() => {
        this.#known = this.#known.filter((each) => each !== generation);
      });
    });
    this.#timers.add(cancel);
  }
}
