import { connect, createServer, type Server, type Socket } from "node:net";

export type Direction = "toTarget" | "toClient";

interface Pair {
  client: Socket;
  target: Socket;
}

/** Network between a process and a server, on this machine: it can be cut, or hold what goes in one direction, or be slow. */
export class Link {
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  readonly #held = new Set<Direction>();
  /** Port of the server. Connections that are open stay where they are. */
  target: number;
  /** Whether new connections are refused. */
  isRefusing = false;
  /** Added to the way of everything that passes. */
  delayMs = 0;

  private constructor(server: Server, target: number) {
    this.#server = server;
    this.target = target;
  }

  static async to(target: number): Promise<Link> {
    const server = createServer();
    const link = new Link(server, target);
    server.on("connection", (client) => link.#join(client));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return link;
  }

  get port(): number {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the link has no port");
    return address.port;
  }

  /** Holds what goes in these directions, until it is released or cut. */
  hold(...directions: readonly Direction[]): void {
    for (const direction of directions) this.#held.add(direction);
    for (const pair of this.#pairs) this.#apply(pair);
  }

  /** Lets everything pass again, also what was held. */
  release(): void {
    this.#held.clear();
    for (const pair of this.#pairs) this.#apply(pair);
  }

  /** Breaks all connections: what was held is lost. */
  cut(): void {
    for (const { client, target } of this.#pairs) {
      client.resetAndDestroy();
      target.resetAndDestroy();
    }
    this.#pairs.clear();
  }

  async stop(): Promise<void> {
    this.isRefusing = true;
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #join(client: Socket): void {
    client.on("error", () => {});
    if (this.isRefusing) {
      client.resetAndDestroy();
      return;
    }
    client.setNoDelay(true);
    const target = connect({ port: this.target, host: "127.0.0.1", noDelay: true });
    const pair = { client, target };
    this.#pairs.add(pair);
    const end = (): void => {
      this.#pairs.delete(pair);
      client.destroy();
      target.destroy();
    };
    target.on("error", end);
    for (const socket of [client, target]) socket.on("close", end);
    this.#pass(client, target);
    this.#pass(target, client);
    this.#apply(pair);
  }

  #pass(from: Socket, to: Socket): void {
    from.on("data", (bytes: Buffer) => {
      if (this.delayMs === 0) to.write(bytes);
      // Timers of one delay end in their order.
      else setTimeout(() => to.write(bytes), this.delayMs);
    });
  }

  #apply({ client, target }: Pair): void {
    for (const [from, direction] of [
      [client, "toTarget"],
      [target, "toClient"],
    ] as const) {
      if (this.#held.has(direction)) from.pause();
      else from.resume();
    }
  }
}
