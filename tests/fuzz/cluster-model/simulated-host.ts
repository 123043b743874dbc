import type { ClusterNode } from "../../../src/server/cluster/protocol/node.ts";
import type { KeptOnDisk, NodePorts } from "../../../src/server/cluster/protocol/node-ports.ts";
import type {
  Instant,
  LogEntry,
  LogServer,
  Place,
  Statement,
} from "../../../src/server/cluster/protocol/statements.ts";
import type { Checker, Expected } from "./checker.ts";
import type { Connection, Network } from "./network.ts";
import type { World } from "./world.ts";

export type NodeType = new (...args: ConstructorParameters<typeof ClusterNode>) => ClusterNode;

const TICK_MS = 400;
const RETRY_MS = 300;
/** Suspensions are shorter. */
const HIDDEN_MAX_MS = 30_000;
const NO_BYTES = new Uint8Array(0);
const START: Place = { position: 0, nonce: "" };
/** Rates of clocks, which differ by less than leases bear. */
const RATES = [0.95, 1, 1.05];

type Waiting =
  | { kind: "write"; body: string; position: number }
  | { kind: "read"; position: number; expected: Expected }
  | { kind: "revocation"; position: number; acknowledgedAtMs: number | null; atMs: number };

interface Disk extends KeptOnDisk {
  server: LogServer | null;
}

const EMPTY_DISK: Disk = { history: 0, noted: START, file: START, server: null };

/** A machine with a node on it: its clocks, its disk, what its clients wait for. It can crash, be suspended, and lose its disk. */
export class SimulatedHost {
  readonly name: string;
  readonly #world: World;
  readonly #network: Network;
  readonly #checker: Checker;
  readonly #nodeType: NodeType;
  node: ClusterNode | null = null;
  #incarnation = 0;
  #nonces = 0;
  readonly #rate: number;
  #wallOffsetMs = 0;
  #stoppedMs = 0;
  #suspendedUntil = 0;
  #stopsClock = false;
  #setBackAt = Number.NEGATIVE_INFINITY;
  /** Inputs that arrive while it is suspended: of connections, in order, and others. */
  #inbox: (() => void)[] = [];
  #others: (() => void)[] = [];
  readonly #connections: { appends: Connection | null; leases: Connection | null } = { appends: null, leases: null };
  #disk: Disk = { ...EMPTY_DISK };
  /** The disk as it was at some moment before: what a power cut or an old copy leaves. */
  #older: { disk: Disk; content: readonly string[] } = { disk: { ...EMPTY_DISK }, content: [] };
  /** Nonces of the positions that the file has. */
  #content: string[] = [];
  #sent: LogEntry | null = null;
  #waiting: Waiting[] = [];
  #isApplying = true;

  constructor(name: string, world: World, network: Network, checker: Checker, nodeType: NodeType) {
    this.name = name;
    this.#world = world;
    this.#network = network;
    this.#checker = checker;
    this.#nodeType = nodeType;
    this.#rate = world.random.pick(RATES);
    this.start();
    const tick = (): void => {
      this.#input(() => this.node?.tick(this.#instant()));
      world.after(TICK_MS / 2 + world.random.below(TICK_MS), tick);
    };
    world.after(world.random.below(TICK_MS), tick);
  }

  get noted(): Place & { history: number } {
    return { ...this.#disk.noted, history: this.#disk.history };
  }

  get isSuspended(): boolean {
    return this.#world.now < this.#suspendedUntil;
  }

  start(): void {
    if (this.node !== null) return;
    this.#incarnation += 1;
    const incarnation = `${this.name}${this.#incarnation}`;
    const own = this.#incarnation;
    const self = {
      node: this.name,
      incarnation,
      durability: "standby" as const,
      server: this.#disk.server,
      disk: this.#disk,
    };
    this.node = new this.#nodeType({ ...self, disk: { ...this.#disk } }, this.#ports(incarnation));
    for (const name of ["appends", "leases"] as const) this.#open(name, own);
  }

  /** Ends the process. A power cut takes what was not synced, and `isDiskOld` puts an old copy of the disk back. */
  crash(how: "killed" | "power cut" | "disk lost"): void {
    if (this.node === null) return;
    this.#disk.file = this.#file();
    this.node = null;
    [this.#inbox, this.#others] = [[], []];
    this.#waiting = [];
    this.#suspendedUntil = 0;
    for (const name of ["appends", "leases"] as const) this.#abandon(name);
    if (how === "disk lost") this.#older = { disk: { ...EMPTY_DISK }, content: [] };
    if (how === "killed") return;
    this.#disk = { ...this.#older.disk };
    this.#content = [...this.#older.content];
  }

  /** Everything of now is on the disk. */
  sync(): void {
    this.#older = { disk: { ...this.#disk, file: this.#file() }, content: [...this.#content] };
  }

  /** Returns the place that the file is at: an owner's may be ahead of the log. */
  #file(): Place {
    const { node } = this;
    if (node === null || !node.isOwner || node.position <= this.#disk.noted.position) return this.#disk.file;
    const isAppended = this.#sent?.position === node.position;
    const nonce = isAppended ? (this.#sent?.nonce ?? "") : "never appended";
    this.#content[node.position - 1] = nonce;
    return { position: node.position, nonce };
  }

  suspend(ms: number, { stopsClock }: { stopsClock: boolean }): void {
    if (this.node === null || this.isSuspended) return;
    this.#suspendedUntil = this.#world.now + ms;
    this.#stopsClock = stopsClock && this.#world.now > this.#setBackAt + HIDDEN_MAX_MS;
    if (this.#stopsClock) this.#stoppedMs += ms;
    const until = this.#suspendedUntil;
    this.#world.after(ms, () => {
      if (this.#suspendedUntil === until) this.#goOn();
    });
  }

  /** Wakes it up early. */
  wake(): void {
    if (!this.isSuspended) return;
    const earlyMs = this.#suspendedUntil - this.#world.now;
    if (this.#stopsClock) this.#stoppedMs -= earlyMs;
    this.#suspendedUntil = this.#world.now;
    this.#goOn();
  }

  #goOn(): void {
    const [inbox, others] = [this.#inbox, this.#others];
    [this.#inbox, this.#others] = [[], []];
    while (inbox.length + others.length > 0) (this.#world.random.chance(0.5) ? inbox : others).shift()?.();
  }

  /** Sets it, unless it would hide from both clocks that the machine is suspended: nothing can tell that. */
  setWallClock(byMs: number): void {
    const hidesMs = -byMs;
    if (hidesMs > 0 && hidesMs < HIDDEN_MAX_MS) {
      if (this.#stopsClock && this.#world.now < this.#suspendedUntil + HIDDEN_MAX_MS) return;
      this.#setBackAt = this.#world.now;
    }
    this.#wallOffsetMs += byMs;
  }

  /** A process that hangs in applying, and otherwise goes on. */
  hang(isHanging: boolean): void {
    this.#isApplying = !isHanging;
  }

  write(body: string): void {
    this.#input(() => {
      const position = this.node?.commit({ file: body, number: 1, content: NO_BYTES }) ?? null;
      if (position === null) return;
      this.#content[position - 1] ??= "local";
      this.#checker.committed(body);
      this.#waiting.push({ kind: "write", body, position });
    });
  }

  /** A write that takes a right away: it is answered when nobody uses that any more. */
  revoke(body: string): void {
    this.#input(() => {
      const position = this.node?.commit({ file: body, number: 1, content: NO_BYTES }) ?? null;
      if (position === null) return;
      this.#content[position - 1] ??= "local";
      this.#checker.committed(body);
      this.#waiting.push({ kind: "revocation", position, acknowledgedAtMs: null, atMs: this.#world.now });
    });
  }

  /** Reads at the owner what is newest, and at a follower what it has. */
  read(): void {
    const expected = this.#checker.expected();
    this.#input(() => {
      if (this.node === null) return;
      const position = this.node.position;
      if (this.node.isOwner) this.#waiting.push({ kind: "read", position, expected });
      else if (this.node.mayAnswer(position, this.#instant()))
        this.#checker.answered(this.#content, position, this.node.history, { ...expected, newest: 0 });
    });
  }

  release(): void {
    this.#input(() => this.node?.release());
  }

  announced(place: Place): void {
    this.#input(() => this.node?.announced(place));
  }

  #instant(): Instant {
    const passed = this.#world.now * this.#rate;
    return { monotonicMs: passed - this.#stoppedMs, wallMs: passed + this.#wallOffsetMs };
  }

  /** Takes an input of a connection. */
  #receive(run: () => void): void {
    this.#input(run, this.#inbox);
  }

  #input(run: () => void, whileSuspended: (() => void)[] = this.#others): void {
    if (this.isSuspended) {
      whileSuspended.push(run);
      return;
    }
    run();
    this.#answerWaiting();
  }

  #answerWaiting(): void {
    const { node } = this;
    if (node === null || this.#waiting.length === 0) return;
    // Where the node is the owner no longer, these have an unknown outcome: nothing was promised.
    if (!node.isOwner) {
      this.#waiting = [];
      return;
    }
    const now = this.#instant();
    this.#waiting = this.#waiting.filter((one) => !this.#leaves(node, one, now));
  }

  /** Whether an answer leaves now. */
  #leaves(node: ClusterNode, one: Waiting, now: Instant): boolean {
    if (!node.mayAnswer(one.position, now)) return false;
    if (one.kind === "write") this.#checker.acknowledged(one.body, one.position, node.history);
    else if (one.kind === "read") this.#checker.answered(this.#content, one.position, node.history, one.expected);
    else {
      one.acknowledgedAtMs ??= now.monotonicMs;
      if (!node.isEverywhere(one.position, one.acknowledgedAtMs)) return false;
      this.#checker.hasRevoked(one.position);
    }
    return true;
  }

  #ports(incarnation: string): NodePorts {
    const own = this.#incarnation;
    const channel = (name: "appends" | "leases") => ({
      send: (statement: Statement) => this.#send(name, statement, own),
      reopen: () => {
        this.#abandon(name);
        this.#world.after(RETRY_MS, () => this.#open(name, own));
      },
    });
    return {
      appends: channel("appends"),
      leases: channel("leases"),
      nonce: () => `${incarnation}.${++this.#nonces}`,
      note: (history, place) => {
        this.#disk.history = history;
        this.#disk.noted = place;
      },
      apply: (entries) => {
        for (const { position, nonce } of entries) {
          if (this.#content.length !== position - 1)
            throw new Error(`${position} is applied to a file that is at ${this.#content.length}`);
          this.#content[position - 1] = nonce;
          this.#disk.file = { position, nonce };
        }
      },
      setAside: () => {
        this.#content = [];
        this.#disk.file = START;
      },
      rebase: () => {
        throw new Error("nothing is dropped from the log of the model");
      },
      hasRoom: () => true,
      acknowledged: (place, isWeak) => {
        this.#content[place.position - 1] = place.nonce;
        this.#disk.file = place;
        this.#checker.appended(place, this.node?.history ?? 0, isWeak);
      },
      owns: (isOwner) => {
        if (isOwner) this.#checker.takeovers += 1;
      },
      alarm: () => this.#checker.alarmed(),
    };
  }

  #open(name: "appends" | "leases", own: number): void {
    if (this.node === null || own !== this.#incarnation || this.#connections[name] !== null) return;
    if (this.isSuspended) {
      this.#world.after(RETRY_MS, () => this.#open(name, own));
      return;
    }
    const closed = (): void => {
      this.#connections[name] = null;
      this.#receive(() => this.node?.closed(name));
      this.#world.after(RETRY_MS, () => this.#open(name, own));
    };
    const connection = this.#network.connect(this.name, `${this.name}${own}`, closed);
    if (connection === null) {
      this.#world.after(RETRY_MS, () => this.#open(name, own));
      return;
    }
    this.#connections[name] = connection;
    this.#receive(() => {
      if (this.#connections[name] !== connection || this.node === null) return;
      if (connection.server.timeline >= (this.#disk.server?.timeline ?? 0))
        this.#disk.server = connection.server.server;
      this.node.opened(name, connection.server.server, this.#instant());
    });
  }

  #send(name: "appends" | "leases", statement: Statement, own: number): void {
    if (statement.kind === "append") this.#sent = statement.entry;
    const connection = this.#connections[name];
    connection?.send(statement, (answer) => {
      this.#receive(() => {
        if (own !== this.#incarnation || this.#connections[name] !== connection) return;
        // A process that hangs in applying reads nothing.
        const applied = this.node?.position ?? 0;
        const isHeld = statement.kind === "read" && !this.#isApplying;
        const entries = isHeld ? answer.entries.filter(({ position }) => position <= applied) : answer.entries;
        this.node?.answered(name, { ...answer, entries }, this.#instant());
      });
    });
  }

  #abandon(name: "appends" | "leases"): void {
    const connection = this.#connections[name];
    this.#connections[name] = null;
    if (connection !== null) this.#network.forget(connection);
  }
}
