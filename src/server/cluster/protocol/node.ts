import { Appender } from "./appender.ts";
import { Channel, KnownServer } from "./channel.ts";
import { FollowedLog } from "./followed.ts";
import { joinOf } from "./joining.ts";
import { KeptEntries } from "./kept.ts";
import { EndsSeen, LeaseWatch, OwnLease } from "./leases.ts";
import { ANSWER_MAX_MS, LEASE_MS, READ_EVERY_MS, READ_POSITIONS_MAX, RENEW_EVERY_MS, TAKE_WAIT_MS } from "./limits.ts";
import type { ChannelName, KeptOnDisk, NodePorts } from "./node-ports.ts";
import type { Role } from "./role.ts";
import {
  type Durability,
  type GroupRow,
  type Instant,
  type LogEntry,
  type LogRow,
  type LogServer,
  type NodeRow,
  outcomeOf,
  type Place,
  type Statement,
  type StatementAnswer,
  type Vacancy,
} from "./statements.ts";
import { vacancyOf } from "./vacancy.ts";

const CHANNELS: readonly ChannelName[] = ["appends", "leases"];
const START: Place = { position: 0, nonce: "" };

/** One node of a cluster, for one group: lease, log and ownership. Time, chance, disk and network are arguments. */
export class ClusterNode {
  readonly #node: string;
  readonly #incarnation: string;
  readonly #durability: Durability;
  readonly #ports: NodePorts;
  readonly #appends: Channel;
  readonly #leases: Channel;
  readonly #known: KnownServer;
  readonly #lease = new OwnLease();
  readonly #watch = new LeaseWatch();
  readonly #ends = new EndsSeen();
  readonly #kept = new KeptEntries();
  readonly #log: FollowedLog;
  #history: number;
  #noted: Place;
  #role: Role = { kind: "comparing", isRead: false };
  #counter = 0;
  /** Times at which the next renewal, or look, and the next read are due. */
  #renewAtMs = 0;
  #readAtMs = 0;
  /** The position that has to be shown before anything is answered. null: the next read says which. */
  #mustReach: number | null = null;
  /** Time at which the log was first seen to be shorter than what is known to be acknowledged. null: it is not. */
  #aheadSinceMs: number | null = null;
  #vacancy: Vacancy | null = null;
  /** Until then, by the monotonic clock, the group is left to others. */
  abstainsUntilMs = 0;
  /** PostgreSQL is told of this position as soon as it is shown: somebody waits for that. 0: there is none. */
  confirms = 0;
  #announced: Place = START;
  #isReleasing = false;
  #takenNonce = "";
  #now: Instant = { monotonicMs: 0, wallMs: 0 };
  #group: GroupRow | null = null;
  #nodes: { rows: readonly NodeRow[]; asOfMs: number } = { rows: [], asOfMs: 0 };

  constructor(
    self: { node: string; incarnation: string; durability: Durability; server: LogServer | null; disk: KeptOnDisk },
    ports: NodePorts,
  ) {
    [this.#node, this.#incarnation, this.#durability] = [self.node, self.incarnation, self.durability];
    this.#known = new KnownServer(self.server);
    [this.#history, this.#noted] = [self.disk.history, self.disk.noted];
    this.#log = new FollowedLog(self.disk.file);
    this.#ports = ports;
    [this.#appends, this.#leases] = [new Channel(ports.appends), new Channel(ports.leases)];
  }

  /** Position that has everything that a read of this node sees now. */
  get position(): number {
    return this.#role.kind === "owning" ? this.#role.appender.tail : this.#log.shown.position;
  }

  get isOwner(): boolean {
    return this.#role.kind === "owning";
  }

  get history(): number {
    return this.#history;
  }

  /** The last place that the owner may tell others about. null: this node is not the owner. */
  get announcement(): Place | null {
    return this.#role.kind === "owning" && this.#role.appender.isWhole ? this.#role.appender.acknowledged : null;
  }

  /** Whether an answer that was computed from this position may leave now. */
  mayAnswer(position: number, now: Instant): boolean {
    if (!this.#lease.isTrusted(now)) return false;
    const role = this.#role;
    if (role.kind === "owning") return role.appender.isWhole && role.appender.acknowledged.position >= position;
    if (role.kind !== "following" && role.kind !== "taking") return false;
    if (this.#mustReach === null || this.#aheadSinceMs !== null) return false;
    return this.#log.shown.position >= Math.max(position, this.#mustReach, this.#noted.position);
  }

  /** Commits as the owner. Returns the position whose acknowledgement answers it; null: this node is not the owner, or is full. */
  commit(row: LogRow): number | null {
    const role = this.#role;
    if (role.kind !== "owning" || this.#isReleasing || !role.appender.commit(row)) return null;
    return role.appender.tail;
  }

  /**
   * Whether every other node has applied this position, or its lease is over: what the position has revoked is used by none.
   * Answers that were asked for before `sinceMs` say nothing.
   */
  isEverywhere(position: number, sinceMs: number): boolean {
    if (this.#nodes.asOfMs <= sinceMs) return false;
    return this.#nodes.rows.every(
      (row) => row.node === this.#node || row.applied >= position || this.#watch.isOver(row),
    );
  }

  /** Gives the group up in order: nothing is taken any more, and what waits is appended first. */
  release(): void {
    this.#isReleasing = this.#role.kind === "owning";
  }

  /** Takes the owner's word for what is acknowledged, and reads at once what it has not read yet. */
  announced(place: Place): void {
    this.#announced = place;
    this.#showAnnounced();
    if (this.#log.shown.position < place.position) this.#readAtMs = 0;
  }

  /** Renews and reads at once: the group may be vacant. */
  hasten(): void {
    this.#renewAtMs = this.#readAtMs = 0;
  }

  /** The group and the nodes as PostgreSQL has last shown them, and whether their leases are over; null: not yet. */
  get seen(): { group: GroupRow; nodes: (NodeRow & { isOver: boolean })[] } | null {
    const nodes = this.#nodes.rows.map((row) => ({ ...row, isOver: this.#watch.isOver(row) }));
    return this.#group === null ? null : { group: this.#group, nodes };
  }

  /** Takes a new connection to this server. */
  opened(name: ChannelName, server: LogServer, now: Instant): void {
    const channel = this.#channel(name);
    if (!this.#known.accepts(server)) {
      channel.reopen();
      return;
    }
    channel.opened(server);
    for (const other of CHANNELS) if (this.#channel(other).isOlderThan(this.#known)) this.#giveUp(other);
    if (name === "appends") this.#startAppends(now);
    this.tick(now);
  }

  closed(name: ChannelName): void {
    this.#channel(name).closed();
    if (name === "appends") {
      if (this.#role.kind === "owning") this.#role.appender.closed();
      return;
    }
    this.#log.forget();
    if (this.#role.kind === "comparing") this.#role = { kind: "comparing", isRead: false };
  }

  answered(name: ChannelName, answer: StatementAnswer, now: Instant): void {
    this.#now = now;
    const asked = this.#channel(name).answered();
    if (asked === null) return;
    if (name === "leases") this.#leaseAnswered(asked, answer, now);
    else if (asked.statement.kind === "terminate") this.#startAppends(now);
    else if (this.#role.kind === "owning") this.#role.appender.answered(answer);
    this.tick(now);
  }

  /** Does what is due. Called after every input, and some times a second. */
  tick(now: Instant): void {
    this.#now = now;
    if (this.#appends.waitedMs(now) > ANSWER_MAX_MS) this.#giveUp("appends");
    const waitedMs = this.#leases.waitedMs(now);
    if (waitedMs > ANSWER_MAX_MS) this.#giveUp("leases");
    else if (waitedMs > TAKE_WAIT_MS) this.#endFormerOwner(now);
    if (!this.#leases.isIdle) return;
    const statement = this.#next(now);
    if (statement !== null) this.#leases.send(statement, now);
  }

  #channel(name: ChannelName): Channel {
    return name === "appends" ? this.#appends : this.#leases;
  }

  #giveUp(name: ChannelName): void {
    this.closed(name);
    this.#channel(name).reopen();
  }

  #startAppends(now: Instant): void {
    this.#now = now;
    if (this.#role.kind === "owning" && this.#appends.isIdle) this.#role.appender.opened();
  }

  /** A backend whose client has gone may hold the group's row for as long as it waits for a standby. */
  #endFormerOwner(now: Instant): void {
    if (this.#leases.underway?.statement.kind !== "take" || !this.#appends.isIdle) return;
    const incarnation = this.#leases.underway.statement.from.incarnation;
    this.#appends.send({ kind: "terminate", incarnation }, now);
  }

  /** Returns what is asked next on the connection of leases; null: nothing is due. */
  #next(now: Instant): Statement | null {
    const role = this.#role;
    if (role.kind === "comparing") {
      if (role.isRead) return { kind: "barrier", node: this.#node };
      return { kind: "look", position: this.#log.shown.position };
    }
    // Whoever gives the group up tells the others at once.
    const isReleased = role.kind === "owning" && this.#isReleasing && role.appender.isIdle;
    const isDue = isReleased || now.monotonicMs >= this.#renewAtMs;
    if (role.kind === "joining" || role.kind === "stopped") {
      if (!isDue) return null;
      this.#renewAtMs = now.monotonicMs + RENEW_EVERY_MS;
      if (role.kind === "stopped" && this.#group?.isStopped === false)
        return { kind: "stop", history: this.#group.history };
      return this.#joinOrLook();
    }
    if (this.#vacancy !== null) {
      const from = this.#vacancy;
      this.#vacancy = null;
      return { kind: "take", node: this.#node, incarnation: this.#incarnation, from };
    }
    const confirms = this.confirms > 0 && this.confirms <= this.#log.shown.position;
    if ((isDue || confirms) && (role.kind === "owning" || this.#isCurrent(now))) return this.#renewal(now);
    if (role.kind === "owning") return null;
    if (this.#log.hasRead) return { kind: "barrier", node: this.#node };
    if (now.monotonicMs < this.#readAtMs || !this.#ports.hasRoom()) return null;
    this.#readAtMs = now.monotonicMs + READ_EVERY_MS;
    return { kind: "read", from: this.#log.shown.position, limit: READ_POSITIONS_MAX };
  }

  /** Whether what is a lease old has been applied, as far as the log still has it. */
  #isCurrent(now: Instant): boolean {
    return this.#log.shown.position >= Math.min(this.#ends.required(now), this.#group?.position ?? 0);
  }

  #joinOrLook(): Statement {
    const look: Statement = { kind: "look", position: this.#log.shown.position };
    const self = { node: this.#node, incarnation: this.#incarnation };
    return this.#role.kind === "joining" ? (joinOf(this.#nodes.rows, self, this.#watch) ?? look) : look;
  }

  #renewal(now: Instant): Statement {
    this.#renewAtMs = now.monotonicMs + RENEW_EVERY_MS;
    const role = this.#role;
    // Whoever gives the group up no longer acts when the others may learn of it.
    if (role.kind === "owning" && this.#isReleasing && role.appender.isIdle) this.#demote();
    const acts = this.#role.kind === "owning" || this.#role.kind === "taking" ? this.#role : null;
    const acting = acts === null ? null : acts.kind === "owning" ? acts.appender.epoch : acts.epoch;
    this.#counter += 1;
    if (this.#log.shown.position >= this.confirms) this.confirms = 0;
    const applied = acts?.kind === "owning" ? acts.appender.acknowledged.position : this.#log.shown.position;
    return {
      kind: "renew",
      node: this.#node,
      incarnation: this.#incarnation,
      counter: this.#counter,
      applied,
      known: this.#noted.position,
      acting,
    };
  }

  #leaseAnswered(asked: { statement: Statement; began: Instant }, answer: StatementAnswer, now: Instant): void {
    this.#watch.observe(answer.nodes, asked.began, now);
    this.#group = answer.group;
    this.#nodes = { rows: answer.nodes, asOfMs: asked.began.monotonicMs };
    if (!this.#isSameHistory(answer.group) || this.#isRebased(answer.group)) return;
    if (this.#role.kind === "comparing") this.#compared(this.#role.isRead, answer);
    else this.#follow(asked, answer, now);
  }

  #isSameHistory(group: GroupRow): boolean {
    if (group.history === this.#history) return true;
    if (group.history < this.#history) this.#raise(group);
    else this.#forget(group.history);
    return false;
  }

  /** Goes on from where the log begins, if it has dropped what this node has not seen of it. Returns whether it has to. */
  #isRebased({ base }: GroupRow): boolean {
    if (this.#role.kind === "owning" || this.#role.kind === "stopped") return false;
    if (!this.#log.isBehind(base)) return false;
    this.#log.restart(base);
    this.#ports.rebase(base);
    [this.#mustReach, this.#readAtMs] = [null, 0];
    if (this.#role.kind === "comparing") this.#role = { kind: "comparing", isRead: false };
    return true;
  }

  #follow(asked: { statement: Statement; began: Instant }, answer: StatementAnswer, now: Instant): void {
    // An answer that was under way changes nothing any more.
    if (this.#role.kind === "stopped") return;
    const { group } = answer;
    const kind = asked.statement.kind;
    const isProof = answer.isDone && outcomeOf(answer, this.#durability) !== "unknown";
    this.#checkPlace(answer.nodes);
    if (this.#role.kind === "taking") this.#checkTakeover(this.#role, group);
    if (this.#role.kind === "owning") this.#checkOwnership(this.#role.appender, group);
    if (kind === "read") this.#read(answer, now);
    else if (kind === "barrier" && isProof) this.#show(this.#log.showAll());
    else if (this.#role.kind === "joining") this.#joined(answer.nodes, kind === "join" && isProof);
    else if (kind === "renew" && isProof) this.#renewed(asked.began, answer, now);
    else if (kind === "take" && isProof) {
      this.#role = { kind: "taking", epoch: group.epoch, position: group.position };
      this.#takenNonce = group.nonce;
      this.#readAtMs = 0;
    }
    this.#actIfReached();
  }

  /** A PostgreSQL that was restored knows nothing of this node, or a process before it. */
  #checkPlace(rows: readonly NodeRow[]): void {
    if (this.#role.kind === "joining" || this.#role.kind === "stopped") return;
    if (rows.some((row) => row.node === this.#node && row.incarnation === this.#incarnation)) return;
    this.#demote();
    this.#role = { kind: "joining" };
    this.#vacancy = null;
  }

  /** An answer that shows another owner ends ownership at once. */
  #checkOwnership(appender: Appender, group: GroupRow): void {
    const isOwner = group.epoch === appender.epoch && group.incarnation === this.#incarnation && !group.isStopped;
    if (!isOwner) this.#demote();
    else if (group.position < appender.acknowledged.position) appender.check();
  }

  #checkTakeover(taking: { epoch: number }, group: GroupRow): void {
    if (group.epoch !== taking.epoch || group.incarnation !== this.#incarnation) this.#role = { kind: "following" };
  }

  #joined(rows: readonly NodeRow[], isJoined: boolean): void {
    const isThere = rows.some((row) => row.node === this.#node && row.incarnation === this.#incarnation);
    if (!isJoined && !isThere) return;
    this.#role = { kind: "following" };
    this.#renewAtMs = 0;
  }

  #renewed(began: Instant, { group, nodes }: StatementAnswer, now: Instant): void {
    this.#extend(began, now);
    this.#ends.add(group.position, now);
    if (this.#role.kind === "following" && this.#lease.isTrusted(now) && now.monotonicMs >= this.abstainsUntilMs)
      this.#vacancy = vacancyOf({ group, nodes }, { node: this.#node, known: this.#noted.position }, this.#watch);
  }

  /** After a gap others may have taken this lease to be over: what they have answered since has to be reached first. */
  #extend(began: Instant, now: Instant): void {
    if (!this.#lease.isTrusted(now)) {
      [this.#mustReach, this.#readAtMs] = [null, 0];
    }
    this.#lease.renewed(began);
  }

  #read({ group, entries }: StatementAnswer, now: Instant): void {
    const comparison = this.#log.read(group, entries);
    if (comparison === "differs") {
      this.#raise(group);
      return;
    }
    this.#compareEnd(group, now);
    this.#showAnnounced();
    if (comparison === "agrees") this.#mustReach ??= group.position;
    // A read takes some of what there is.
    if (comparison === "agrees" && (entries.at(-1)?.position ?? group.position) < group.position) this.#readAtMs = 0;
  }

  /**
   * A log that is shorter than what is known to be acknowledged gets that again from whoever has kept it. If something else follows
   * instead, or nothing for two leases, it is lost.
   */
  #compareEnd(group: GroupRow, now: Instant): void {
    if (group.position >= this.#noted.position) {
      this.#aheadSinceMs = null;
      return;
    }
    this.#aheadSinceMs ??= now.monotonicMs;
    const isLate = now.monotonicMs - this.#aheadSinceMs >= 2 * LEASE_MS;
    if (isLate || this.#kept.differs(group)) this.#raise(group);
  }

  #showAnnounced(): void {
    if (this.#role.kind === "following") this.#show(this.#log.showUpTo(this.#announced));
  }

  #show(entries: readonly LogEntry[]): void {
    const atNoted = entries.find(({ position }) => position === this.#noted.position);
    if (atNoted !== undefined && atNoted.nonce !== this.#noted.nonce) {
      if (this.#group !== null) this.#raise(this.#group);
      return;
    }
    if (entries.length === 0) return;
    this.#ports.apply(entries);
    for (const entry of entries) this.#kept.add(entry);
    this.#note(this.#log.shown);
  }

  #note(place: Place): void {
    if (place.position <= this.#noted.position) return;
    this.#noted = place;
    this.#ports.note(this.#history, place);
  }

  /** A taker becomes the owner when it has applied everything up to its takeover, and appends again what the log has lost. */
  #actIfReached(): void {
    const role = this.#role;
    if (role.kind !== "taking" || this.#log.shown.position < role.position) return;
    const end = { position: role.position, nonce: this.#takenNonce };
    const again = this.#kept.after(end, this.#noted.position);
    if (again === null || (this.#log.shown.position === end.position && this.#log.shown.nonce !== end.nonce)) {
      if (this.#group !== null) this.#raise(this.#group);
      return;
    }
    const missing = again.filter(({ position }) => position > this.#log.shown.position);
    if (missing.length > 0) this.#ports.apply(missing);
    const owner = { node: this.#node, incarnation: this.#incarnation, epoch: role.epoch, durability: this.#durability };
    const appender = new Appender({ ...owner, end, acknowledged: this.#noted }, again, this.#kept, {
      send: (statement) => this.#appends.send(statement, this.#now),
      nonce: () => this.#ports.nonce(),
      note: (place) => this.#note(place),
      acknowledged: (place, isWeak) => this.#ports.acknowledged(place, isWeak),
      fenced: () => this.#demote(),
      lost: () => {
        if (this.#group !== null) this.#raise(this.#group);
      },
    });
    this.#isReleasing = false;
    this.#role = { kind: "owning", appender };
    this.#ports.owns(true);
    this.#startAppends(this.#now);
  }

  /** Follows from here on. A file with commits that nobody has acknowledged is set aside. */
  #demote(): void {
    if (this.#role.kind !== "owning") return;
    const { appender } = this.#role;
    appender.end();
    this.#role = { kind: "following" };
    [this.#mustReach, this.#readAtMs] = [null, 0];
    const isClean = appender.tail === appender.acknowledged.position;
    this.#log.restart(isClean ? appender.acknowledged : START);
    if (!isClean) this.#ports.setAside();
    this.#ports.owns(false);
  }

  /** The log has lost what this node knows to be acknowledged: the group is stopped, and nobody goes on in silence. */
  #raise(group: GroupRow): void {
    if (this.#role.kind === "stopped") return;
    this.#demote();
    this.#role = { kind: "stopped" };
    this.#renewAtMs = 0;
    this.#ports.alarm(group);
  }

  /** Begins anew in a history whose losses were accepted. */
  #forget(history: number): void {
    this.#demote();
    this.#history = history;
    this.#noted = START;
    this.#kept.clear();
    this.#ends.clear();
    this.#log.restart(START);
    this.#ports.setAside();
    this.#ports.note(history, START);
    [this.#mustReach, this.#aheadSinceMs, this.#vacancy, this.#readAtMs] = [null, null, null, 0];
    this.#role = this.#role.kind === "comparing" ? { kind: "comparing", isRead: false } : { kind: "joining" };
    this.#renewAtMs = 0;
  }

  /** Goes on from where the file is, if the log has that, and believes what it sees after a write behind it only. */
  #compared(isRead: boolean, answer: StatementAnswer): void {
    const { position, nonce } = this.#log.shown;
    if (isRead) {
      const isProof = answer.isDone && outcomeOf(answer, this.#durability) !== "unknown";
      if (isProof) this.#note(this.#log.shown);
      this.#role = isProof ? { kind: "joining" } : { kind: "comparing", isRead: false };
      return;
    }
    // Ahead of the log, or different: it holds what nobody has acknowledged.
    const { base } = answer.group;
    const found = position === base.position ? base.nonce : answer.entries[0]?.nonce;
    if (position > 0 && found !== nonce) {
      this.#log.restart(START);
      this.#ports.setAside();
    }
    this.#role = { kind: "comparing", isRead: true };
  }
}
