import type { Clock } from "../../../kernel/clock.ts";
import { LogChannel } from "../postgres/log-channel.ts";
import type { ChannelPorts } from "../protocol/channel.ts";
import { ClusterNode } from "../protocol/node.ts";
import type { ChannelName } from "../protocol/node-ports.ts";
import type {
  Durability,
  GroupRow,
  Instant,
  LogEntry,
  LogRow,
  LogServer,
  Place,
  StatementAnswer,
} from "../protocol/statements.ts";
import type { NotedPlace } from "./noted-place.ts";

/** The delay between two looks at what is due. */
const TICK_MS = 100;

/** Copies of the files that a member has while it follows. */
export interface FollowedFiles {
  /** The place of the log that they are at; its start where there are none. */
  readonly place: Place;
  /** Applies entries of the log, which may be shown from then on. */
  apply(entries: readonly LogEntry[]): void;
  /** Puts the files aside, and begins anew at the start of the log. */
  setAside(): void;
  /** Goes on from a place behind which the log begins, with what the object store has of before. */
  rebase(base: Place): void;
  /** Whether it can take more: what it was given waits to be applied. */
  readonly hasRoom: boolean;
}

/** Takes what happens to a member. No method throws. */
export interface MemberEvents {
  /** The member is the owner from now on, or no longer: then what waits has an unknown outcome. */
  owns(isOwner: boolean): void;
  /** Something may have changed: more may be answered, or less. Called often. */
  progressed(): void;
  /** The log lacks what was acknowledged. Nothing goes on before an operator has accepted that. */
  alarm(group: GroupRow): void;
  /** A position is acknowledged although it is in one PostgreSQL only, where a standby was asked for; or again with one. */
  weak(isWeak: boolean): void;
  /** A connection could not be had, or a statement failed. The member tries again. */
  failed(cause: unknown): void;
}

export interface MemberOptions {
  /** URL of PostgreSQL. */
  postgres: string;
  /** The node's identity in the cluster: its address. */
  node: string;
  /** Identity of this process: no other one ever had it. */
  incarnation: string;
  durability: Durability;
  noted: NotedPlace;
  files: FollowedFiles;
  events: MemberEvents;
  clock: Pick<Clock, "after">;
  now: () => Instant;
  nonce: () => string;
}

/** One node of a cluster on real connections, clocks and disk, in whichever role: follower or owner. */
export class ClusterMember {
  readonly #options: MemberOptions;
  readonly #node: ClusterNode;
  readonly #channels: Readonly<Record<ChannelName, LogChannel>>;
  #cancelTick: () => void = () => {};
  #isStopped = false;
  #isWeak = false;

  constructor(options: MemberOptions) {
    this.#options = options;
    const { node, incarnation, durability, noted, files, events, nonce } = options;
    const kept = { history: noted.noted.history, noted: noted.noted.place, file: files.place };
    this.#node = new ClusterNode(
      { node, incarnation, durability, server: null, disk: kept },
      {
        appends: this.#portsOf("appends"),
        leases: this.#portsOf("leases"),
        nonce,
        note: (history, place) => noted.write(history, place),
        apply: (entries) => files.apply(entries),
        setAside: () => files.setAside(),
        rebase: (base) => files.rebase(base),
        hasRoom: () => files.hasRoom,
        acknowledged: (_, isWeak) => this.#noteWeak(isWeak),
        owns: (isOwner) => events.owns(isOwner),
        alarm: (group) => events.alarm(group),
      },
    );
    this.#channels = { appends: this.#open("appends"), leases: this.#open("leases") };
  }

  /** Connects, and takes part from then on. The schema must be there. */
  start(): void {
    for (const channel of Object.values(this.#channels)) channel.start();
    this.#tick();
  }

  /** Ends its connections. An owner should have released the group, and waited until it no longer owns it. */
  stop(): void {
    this.#isStopped = true;
    this.#cancelTick();
    for (const channel of Object.values(this.#channels)) channel.stop();
  }

  get isOwner(): boolean {
    return this.#node.isOwner;
  }

  /** Position that has everything that a read of this node sees now. */
  get position(): number {
    return this.#node.position;
  }

  /** The last place that the owner may tell others about. null: this node is not the owner. */
  get announcement(): Place | null {
    return this.#node.announcement;
  }

  /** Counts the losses that operators have accepted. */
  get history(): number {
    return this.#node.history;
  }

  /** Whether an answer that was computed from this position may leave now. */
  mayAnswer(position: number): boolean {
    return this.#node.mayAnswer(position, this.#options.now());
  }

  /** Commits as the owner. Returns the position whose acknowledgement answers it; null: this node is not the owner, or is full. */
  commit(row: LogRow): number | null {
    return this.#node.commit(row);
  }

  /** Takes the owner's word for what is acknowledged. */
  announced(place: Place): void {
    this.#input((now) => {
      this.#node.announced(place);
      this.#node.tick(now);
    });
  }

  /** Leaves the group to others for a while. */
  abstain(durationMs: number): void {
    this.#node.abstainsUntilMs = this.#options.now().monotonicMs + durationMs;
  }

  /** Renews as soon as this position is shown. */
  confirm(position: number): void {
    this.#input((now) => {
      this.#node.confirms = Math.max(this.#node.confirms, position);
      this.#node.tick(now);
    });
  }

  /** Renews and reads at once: the group may be vacant. */
  hasten(): void {
    this.#input((now) => {
      this.#node.hasten();
      this.#node.tick(now);
    });
  }

  /** The group and the nodes as PostgreSQL has last shown them, and whether their leases are over; null: not yet. */
  get seen(): ClusterNode["seen"] {
    return this.#node.seen;
  }

  /** Whether every other live node has applied this position, by answers that were asked for after `sinceMs` of the monotonic clock. */
  isEverywhere(position: number, sinceMs: number): boolean {
    return this.#node.isEverywhere(position, sinceMs);
  }

  /** Gives the group up in order, as its owner: nothing is taken any more, and what waits is appended first. `owns` tells when. */
  release(): void {
    this.#input((now) => {
      this.#node.release();
      this.#node.tick(now);
    });
  }

  #portsOf(name: ChannelName): ChannelPorts {
    return {
      send: (statement) => this.#channels[name].send(statement),
      reopen: () => this.#channels[name].reopen(),
    };
  }

  #open(name: ChannelName): LogChannel {
    const { postgres, incarnation, nonce, clock, events } = this.#options;
    return new LogChannel({
      url: postgres,
      incarnation,
      nonce,
      after: (delayMs, run) => void clock.after(delayMs, run),
      opened: (server: LogServer) => this.#input((now) => this.#node.opened(name, server, now)),
      closed: () => this.#input(() => this.#node.closed(name)),
      answered: (answer: StatementAnswer) => this.#input((now) => this.#node.answered(name, answer, now)),
      failed: (cause) => events.failed(cause),
    });
  }

  #input(take: (now: Instant) => void): void {
    if (this.#isStopped) return;
    take(this.#options.now());
    this.#options.events.progressed();
  }

  #tick(): void {
    this.#input((now) => this.#node.tick(now));
    this.#cancelTick = this.#options.clock.after(TICK_MS, () => this.#tick());
  }

  #noteWeak(isWeak: boolean): void {
    if (isWeak === this.#isWeak) return;
    this.#isWeak = isWeak;
    this.#options.events.weak(isWeak);
  }
}
