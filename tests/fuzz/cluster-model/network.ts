import type { Statement, StatementAnswer } from "../../../src/server/cluster/protocol/statements.ts";
import type { SimulatedPostgres } from "./simulated-postgres.ts";
import type { World } from "./world.ts";

const LATENCY_MS = 30;
const LATE_MAX_MS = 6_000;

/** Connections between nodes and servers, with their faults: bytes on their way may be lost, or be carried out when nobody waits any more. */
export class Network {
  /** The server that new connections lead to. */
  primary: SimulatedPostgres;
  /** A former primary that still runs, and the only node that reaches it, now and then. */
  former: { server: SimulatedPostgres; node: string } | null = null;
  readonly #cut = new Set<string>();
  readonly #world: World;
  readonly #open = new Set<Connection>();
  /** Times that a statement was carried out after its connection was gone. */
  late = 0;
  /** Statements that are carried out at the next takeover. */
  #held: (() => void)[] = [];

  constructor(world: World, primary: SimulatedPostgres) {
    this.#world = world;
    this.primary = primary;
  }

  serverFor(node: string): SimulatedPostgres | null {
    if (this.#cut.has(node)) return null;
    const isLed = this.former?.node === node && this.#world.random.chance(0.6);
    const server = isLed ? (this.former?.server ?? this.primary) : this.primary;
    return server.isUp ? server : null;
  }

  connect(node: string, incarnation: string, closed: () => void): Connection | null {
    const server = this.serverFor(node);
    if (server === null) return null;
    const connection = new Connection(this.#world, server, { node, incarnation }, closed, (run) =>
      this.#carryOutLate(run),
    );
    this.#open.add(connection);
    return connection;
  }

  /** Cuts a node off: what it sends is lost, and so are answers. */
  cut(node: string): void {
    this.#cut.add(node);
    for (const connection of this.#of(node)) connection.isMute = true;
  }

  isCut(node: string): boolean {
    return this.#cut.has(node);
  }

  mend(node: string): void {
    this.#cut.delete(node);
  }

  /** Loses the answers of a node's connections, and not what it asks. */
  deafen(node: string): void {
    for (const connection of this.#of(node)) connection.isDeaf = true;
  }

  /** Delays the answers of a node's connections, up to what it waits for. */
  slow(node: string, answersMs: number): void {
    for (const connection of this.#of(node)) connection.answersMs = answersMs;
  }

  /** Drops connections: of a node, or of a server. */
  drop(which: { node?: string; server?: SimulatedPostgres }): void {
    for (const connection of [...this.#open])
      if (connection.node === which.node || connection.server === which.server) {
        this.#open.delete(connection);
        connection.drop();
      }
  }

  forget(connection: Connection): void {
    this.#open.delete(connection);
    connection.abandon();
  }

  /** Carries out what was held, at moments about now. */
  releaseHeld(): void {
    for (const run of this.#held.splice(0)) this.#world.after(this.#world.random.below(2 * LATENCY_MS), run);
  }

  #carryOutLate(run: () => void): void {
    const { random } = this.#world;
    const counted = (): void => {
      this.late += 1;
      run();
    };
    if (random.chance(0.4)) this.#held.push(counted);
    else this.#world.after(random.below(LATE_MAX_MS), counted);
  }

  *#of(node: string): Iterable<Connection> {
    for (const connection of this.#open) if (connection.node === node) yield connection;
  }
}

export class Connection {
  isMute = false;
  isDeaf = false;
  answersMs = LATENCY_MS;
  readonly server: SimulatedPostgres;
  readonly node: string;
  readonly #incarnation: string;
  readonly #world: World;
  readonly #closed: () => void;
  readonly #late: (run: () => void) => void;
  #isOpen = true;

  constructor(
    world: World,
    server: SimulatedPostgres,
    of: { node: string; incarnation: string },
    closed: () => void,
    late: (run: () => void) => void,
  ) {
    this.#world = world;
    this.server = server;
    this.node = of.node;
    this.#incarnation = of.incarnation;
    this.#closed = closed;
    this.#late = late;
  }

  send(statement: Statement, answered: (answer: StatementAnswer) => void): void {
    const world = this.#world;
    world.after(1 + world.random.below(LATENCY_MS), () => {
      if (this.#isOpen && !this.isMute)
        this.server.receive(statement, this.#incarnation, (answer) => this.#answer(answer, answered));
      else if (world.random.chance(0.5)) this.#late(() => this.server.receive(statement, this.#incarnation, () => {}));
    });
  }

  /** Ends it at both ends. */
  drop(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#closed();
  }

  /** Ends it at the node's end. */
  abandon(): void {
    this.#isOpen = false;
  }

  #answer(answer: StatementAnswer, answered: (answer: StatementAnswer) => void): void {
    this.#world.after(this.answersMs - this.#world.random.below(LATENCY_MS), () => {
      if (this.#isOpen && !this.isMute && !this.isDeaf) answered(answer);
    });
  }
}
