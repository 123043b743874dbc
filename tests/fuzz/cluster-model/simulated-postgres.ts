import type {
  GroupRow,
  LogEntry,
  LogServer,
  NodeRow,
  Settings,
  Statement,
  StatementAnswer,
} from "../../../src/server/cluster/protocol/statements.ts";
import type { World } from "./world.ts";

/** Conditions of the statements, each of which can be left out. Where two hold one another up, they are left out together. */
export const CONDITIONS = [
  "append: owner",
  "append: place",
  "append: not stopped",
  "take: counter of the owner",
  "take: the owner's row is changed too",
  "renew: counter grows",
  "renew: acts as its row says",
] as const;
export type Condition = (typeof CONDITIONS)[number];

/** A commit in the WAL: rows as they are after it. */
interface Change {
  group?: GroupRow;
  nodes?: readonly NodeRow[];
  entry?: LogEntry;
}

interface Transaction {
  statement: Statement;
  incarnation: string;
  reply: (answer: StatementAnswer) => void;
  snapshot: Pick<StatementAnswer, "group" | "nodes" | "entries">;
  before: Settings;
  locks: readonly string[];
  change: Change;
  /** Length of the WAL with it. */
  end: number;
}

const NO_ENTRIES: readonly LogEntry[] = [];
const STANDBY_NAMES = "ANY 1 (standby)";

/** One PostgreSQL: rows with locks, a WAL, and a standby that has some of it. */
export class SimulatedPostgres {
  readonly timeline: number;
  readonly wal: Change[] = [];
  isUp = true;
  /** Another one was promoted: what was its standby never follows it again. */
  isReplaced = false;
  standbyNames: string;
  hasStandby = false;
  /** Length of the WAL of which the end was confirmed to somebody as a success. */
  confirmed = 0;
  /** Length of the WAL that the standby has. */
  flushed = 0;
  group: GroupRow = {
    history: 0,
    isStopped: false,
    base: { position: 0, nonce: "" },
    epoch: 0,
    owner: "",
    incarnation: "",
    position: 0,
    nonce: "",
  };
  /** Places at which the group was taken. */
  readonly takes: { epoch: number; position: number }[] = [];
  /** Position at which the group was stopped. */
  stoppedAt = 0;
  readonly entries: LogEntry[] = [];
  readonly #world: World;
  readonly #off: Condition | null;
  /** Called when a takeover is under way: the worst moment for much else. */
  readonly #onTake: () => void;
  #nodes: readonly NodeRow[] = [];
  #loads = 0;
  readonly #locked = new Set<string>();
  #waiting: Transaction[] = [];
  #blocked: Transaction[] = [];

  constructor(
    world: World,
    { off, onTake }: { off: Condition | null; onTake: () => void },
    timeline: number,
    wal: readonly Change[],
  ) {
    this.#world = world;
    this.#off = off;
    this.#onTake = onTake;
    this.timeline = timeline;
    this.standbyNames = STANDBY_NAMES;
    for (const change of wal) {
      this.wal.push(change);
      this.#apply(change);
    }
    this.flushed = this.wal.length;
  }

  get server(): LogServer {
    return { system: "one", timeline: this.timeline, isStandby: false };
  }

  get isWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  receive(statement: Statement, incarnation: string, reply: (answer: StatementAnswer) => void): void {
    if (!this.isUp) return;
    const snapshot = { group: this.group, nodes: this.#nodes, entries: this.#entriesFor(statement) };
    const before = { standbyNames: this.standbyNames, loadedAt: String(this.#loads) };
    const locks = this.#locksOf(statement);
    const transaction = { statement, incarnation, reply, snapshot, before, locks, change: {}, end: 0 };
    this.#execute(transaction);
  }

  /** Ends the waits for the standby of one process's backends, or of all: they return as success, with a notice. */
  cancelWaits(incarnation: string | null): void {
    const ended = this.#waiting.filter((one) => incarnation === null || one.incarnation === incarnation);
    this.#waiting = this.#waiting.filter((one) => !ended.includes(one));
    if (incarnation !== null) this.#blocked = this.#blocked.filter((one) => one.incarnation !== incarnation);
    for (const one of ended) this.#finish(one, { hasNotice: true });
  }

  /** Sets the names of standbys. None: everything that waits returns, without a notice. */
  setStandbyNames(names: readonly string[]): void {
    for (const name of names) {
      this.#loads += 1;
      this.standbyNames = name;
    }
    if (!names.includes("")) return;
    const ended = this.#waiting;
    this.#waiting = [];
    for (const one of ended) this.#finish(one, { hasNotice: false });
  }

  isolateStandby(): void {
    this.hasStandby = false;
  }

  attachStandby(): void {
    if (this.isReplaced) return;
    this.hasStandby = true;
    this.standbyNames = STANDBY_NAMES;
    this.#replicate();
  }

  /** Ends it at once. What is in the WAL is visible after a restart, replicated or not. */
  crash(): void {
    this.isUp = false;
    const waiting = this.#waiting;
    [this.#waiting, this.#blocked] = [[], []];
    this.#locked.clear();
    for (const one of waiting) this.#apply(one.change);
  }

  restart(): void {
    if (this.isReplaced) return;
    this.isUp = true;
    this.#replicate();
  }

  /** Goes on behind a loss, as the operator says. */
  acceptLoss(): void {
    const { history, epoch } = this.group;
    const group = {
      ...this.group,
      history: history + 1,
      epoch: epoch + 1,
      isStopped: false,
      base: { position: 0, nonce: "" },
      owner: "",
      incarnation: "",
    };
    this.wal.push({ group });
    this.#apply({ group });
    this.#replicate();
  }

  #locksOf(statement: Statement): readonly string[] {
    if (statement.kind === "append" || statement.kind === "stop") return ["group"];
    if (statement.kind === "renew" || statement.kind === "join") return [statement.node];
    if (statement.kind !== "take") return [];
    return ["group", statement.node, this.group.owner];
  }

  #entriesFor(statement: Statement): readonly LogEntry[] {
    if (statement.kind === "look") {
      const found = this.entries[statement.position - 1];
      return found === undefined ? NO_ENTRIES : [found];
    }
    if (statement.kind !== "read") return NO_ENTRIES;
    const { from, limit } = statement;
    return this.entries.slice(Math.max(0, from - 1), Math.max(0, from - 1 + limit));
  }

  #execute(one: Transaction): void {
    const { statement } = one;
    if (statement.kind === "look" || statement.kind === "read") {
      this.#reply(one, { isDone: true, hasNotice: false });
      return;
    }
    if (statement.kind === "terminate") {
      this.cancelWaits(statement.incarnation);
      this.#reply(one, { isDone: true, hasNotice: false });
      return;
    }
    if (one.locks.some((lock) => this.#locked.has(lock))) {
      this.#blocked.push(one);
      return;
    }
    const change = this.#changeOf(statement);
    if (change === null) {
      this.#reply(one, { isDone: false, hasNotice: false });
      return;
    }
    if (statement.kind === "take") this.#onTake();
    one.change = change;
    this.wal.push(change);
    one.end = this.wal.length;
    if (this.standbyNames === "") this.#finish(one, { hasNotice: false });
    else {
      for (const lock of one.locks) this.#locked.add(lock);
      this.#waiting.push(one);
    }
    this.#replicate();
  }

  #replicate(): void {
    if (!this.hasStandby) return;
    const end = this.wal.length;
    this.#world.after(1 + this.#world.random.below(20), () => {
      if (!this.isUp || !this.hasStandby || this.flushed >= end) return;
      this.flushed = end;
      while ((this.#waiting[0]?.end ?? Number.POSITIVE_INFINITY) <= end) {
        const one = this.#waiting.shift();
        if (one !== undefined) this.#finish(one, { hasNotice: false });
      }
    });
  }

  #finish(one: Transaction, { hasNotice }: { hasNotice: boolean }): void {
    this.#apply(one.change);
    if (!hasNotice && one.before.loadedAt === String(this.#loads)) this.confirmed = Math.max(this.confirmed, one.end);
    for (const lock of one.locks) this.#locked.delete(lock);
    this.#reply(one, { isDone: true, hasNotice });
    if (this.#blocked.length === 0) return;
    const blocked = this.#blocked;
    this.#blocked = [];
    for (const next of blocked) this.#execute(next);
  }

  #reply(one: Transaction, { isDone, hasNotice }: { isDone: boolean; hasNotice: boolean }): void {
    const after = { standbyNames: this.standbyNames, loadedAt: String(this.#loads) };
    // A group's row that the statement has changed is returned as it is now; others are those of its snapshot.
    const group = one.change.group ?? one.snapshot.group;
    one.reply({
      isDone,
      group,
      nodes: one.snapshot.nodes,
      entries: one.snapshot.entries,
      hasNotice,
      before: one.before,
      after,
    });
  }

  #apply({ group, nodes, entry }: Change): void {
    if (group?.isStopped === true && !this.group.isStopped) this.stoppedAt = group.position;
    if (group !== undefined && group.epoch > this.group.epoch)
      this.takes.push({ epoch: group.epoch, position: group.position });
    if (group !== undefined) this.group = group;
    if (entry !== undefined) this.entries[entry.position - 1] = entry;
    if (nodes === undefined) return;
    for (const node of nodes) {
      const others = this.#nodes.filter((row) => row.node !== node.node);
      this.#nodes = [...others, node];
    }
  }

  #isChecked(condition: Condition): boolean {
    return this.#off !== condition;
  }

  /** Returns what a statement changes, by rows that it has locked. null: it does not find what it expects. */
  #changeOf(statement: Statement): Change | null {
    if (statement.kind === "append") return this.#append(statement);
    if (statement.kind === "take") return this.#take(statement);
    if (statement.kind === "renew") return this.#renew(statement);
    if (statement.kind === "join") return this.#join(statement);
    if (statement.kind === "stop") {
      if (this.group.history !== statement.history || this.group.isStopped) return null;
      return { group: { ...this.group, isStopped: true } };
    }
    return {};
  }

  #append({ entry, epoch, incarnation }: Statement & { kind: "append" }): Change | null {
    const { group } = this;
    const isNext = group.position + 1 === entry.position && group.nonce === entry.previous;
    const isOwner = group.epoch === epoch && group.incarnation === incarnation;
    const isExpected =
      (isNext || !this.#isChecked("append: place")) &&
      (isOwner || !this.#isChecked("append: owner")) &&
      (!group.isStopped || !this.#isChecked("append: not stopped"));
    if (!isExpected) return null;
    // Without this condition the group moves to the next position, whatever the sender thought.
    const written = isNext ? entry : { ...entry, position: group.position + 1 };
    return { group: { ...group, position: written.position, nonce: entry.nonce }, entry: written };
  }

  #take({ node, incarnation, from }: Statement & { kind: "take" }): Change | null {
    const { group } = this;
    const self = this.#row(node);
    if (self === undefined || self.incarnation !== incarnation || group.isStopped) return null;
    const isFrom = group.epoch === from.epoch && group.owner === from.owner && group.incarnation === from.incarnation;
    if (!isFrom) return null;
    const owner = this.#row(group.owner);
    const acts = owner !== undefined && owner.incarnation === group.incarnation && owner.acting === group.epoch;
    const isSeen = from.counter === null ? !acts : acts && owner.counter === from.counter;
    if (!isSeen && this.#isChecked("take: counter of the owner")) return null;
    const epoch = group.epoch + 1;
    const nodes: NodeRow[] = [{ ...self, acting: epoch }];
    const isOther = owner !== undefined && owner.node !== node;
    if (isOther && acts && this.#isChecked("take: the owner's row is changed too"))
      nodes.unshift({ ...owner, acting: null });
    return { group: { ...group, epoch, owner: node, incarnation }, nodes };
  }

  #renew(stated: Statement & { kind: "renew" }): Change | null {
    const { node, incarnation, counter, applied, known, acting } = stated;
    const row = this.#row(node);
    if (row === undefined || row.incarnation !== incarnation) return null;
    if (counter <= row.counter && this.#isChecked("renew: counter grows")) return null;
    if (acting !== null && acting !== row.acting && this.#isChecked("renew: acts as its row says")) return null;
    return { nodes: [{ node, incarnation, counter, applied, known, acting }] };
  }

  #join({ node, incarnation, replaces }: Statement & { kind: "join" }): Change | null {
    const row = this.#row(node);
    const isExpected =
      replaces === null
        ? row === undefined
        : row?.incarnation === replaces.incarnation && row.counter === replaces.counter;
    if (!isExpected) return null;
    return { nodes: [{ node, incarnation, counter: 0, applied: 0, known: 0, acting: null }] };
  }

  #row(node: string): NodeRow | undefined {
    return this.#nodes.find((row) => row.node === node);
  }
}
