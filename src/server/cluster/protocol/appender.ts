import type { KeptEntries } from "./kept.ts";
import { APPEND_BYTES, QUEUE_MAX, QUEUE_MAX_BYTES } from "./limits.ts";
import {
  type Durability,
  type GroupRow,
  type LogEntry,
  type LogRow,
  outcomeOf,
  type Place,
  type Statement,
  type StatementAnswer,
} from "./statements.ts";

export interface AppenderPorts {
  /** Sends one statement on the connection of appends, which has none under way. */
  send(statement: Statement): void;
  nonce(): string;
  /** Writes the place to the disk before it returns: it is known to be acknowledged. */
  note(place: Place): void;
  acknowledged(place: Place, isWeak: boolean): void;
  /** The group has another owner, or another entry has the position: what waits has an unknown outcome. */
  fenced(): void;
  /** The log has lost what was acknowledged, and it cannot be appended again. */
  lost(): void;
}

/**
 * The owner's appends, one at a time. An outcome that is not known is not guessed: the same entry is sent again until it is found and a
 * write behind it has returned, or another entry has its position, or the group another owner.
 */
export class Appender {
  readonly #ports: AppenderPorts;
  readonly #durability: Durability;
  readonly #node: string;
  readonly #incarnation: string;
  readonly #kept: KeptEntries;
  readonly epoch: number;
  /** The last place that is acknowledged. */
  acknowledged: Place;
  /** The last place of the log that is known to be there: before `acknowledged` while a loss is made good. */
  #end: Place;
  /** Entries that follow `#end`; the first is under way. */
  #entries: LogEntry[];
  /** Commits of the appends behind them. */
  #waiting: { body: LogRow[]; bytes: number }[] = [];
  #waitingCount = 0;
  #waitingBytes = 0;
  #underway: "append" | "look" | "barrier" | null = null;
  #isOpen = false;
  #isEnded = false;

  constructor(
    owner: {
      node: string;
      incarnation: string;
      epoch: number;
      durability: Durability;
      end: Place;
      acknowledged: Place;
    },
    again: readonly LogEntry[],
    kept: KeptEntries,
    ports: AppenderPorts,
  ) {
    this.#ports = ports;
    this.#durability = owner.durability;
    this.#node = owner.node;
    this.#incarnation = owner.incarnation;
    this.epoch = owner.epoch;
    this.#end = owner.end;
    this.acknowledged = owner.acknowledged;
    this.#entries = [...again];
    this.#kept = kept;
  }

  /** Position behind which all commits up to now are in the log. */
  get tail(): number {
    return (this.#entries.at(-1)?.position ?? this.#end.position) + this.#waiting.length;
  }

  /** Whether the log has everything that was acknowledged, as far as this node knows. */
  get isWhole(): boolean {
    return this.#end.position >= this.acknowledged.position;
  }

  get isIdle(): boolean {
    return this.#entries.length === 0 && this.#waiting.length === 0;
  }

  /** Takes a commit into the next append that has room for it. Returns whether one has. */
  commit(row: LogRow): boolean {
    const { byteLength } = row.content;
    const isFull = this.#waitingCount >= QUEUE_MAX || this.#waitingBytes + byteLength > QUEUE_MAX_BYTES;
    if (this.#isEnded || isFull) return false;
    const last = this.#waiting.at(-1);
    if (last === undefined || last.bytes + byteLength > APPEND_BYTES)
      this.#waiting.push({ body: [row], bytes: byteLength });
    else {
      last.body.push(row);
      last.bytes += byteLength;
    }
    this.#waitingCount += 1;
    this.#waitingBytes += byteLength;
    this.#next();
    return true;
  }

  opened(): void {
    this.#isOpen = true;
    this.#next();
  }

  closed(): void {
    this.#isOpen = false;
    this.#underway = null;
  }

  /** Ends it: nothing more is sent or acknowledged. */
  end(): void {
    this.#isEnded = true;
  }

  /** Compares the end of the log with what is known, because another connection has seen an earlier one. */
  check(): void {
    if (this.#underway === null && this.#isOpen && !this.#isEnded) this.#look();
  }

  answered(answer: StatementAnswer): void {
    const kind = this.#underway;
    this.#underway = null;
    if (this.#isEnded || kind === null) return;
    if (kind === "look") this.#looked(answer);
    else if (answer.isDone && outcomeOf(answer, this.#durability) !== "unknown") this.#appended(answer);
    else this.#look();
  }

  #next(): void {
    if (this.#underway !== null || !this.#isOpen || this.#isEnded) return;
    const next = this.#entries.length === 0 ? this.#waiting.shift() : undefined;
    if (next !== undefined) {
      const { position, nonce: previous } = this.#end;
      const { body } = next;
      this.#waitingCount -= body.length;
      this.#waitingBytes -= next.bytes;
      this.#entries.push({ position: position + 1, epoch: this.epoch, nonce: this.#ports.nonce(), previous, body });
    }
    const entry = this.#entries[0];
    if (entry !== undefined)
      this.#send("append", { kind: "append", incarnation: this.#incarnation, epoch: this.epoch, entry });
  }

  #send(kind: "append" | "look" | "barrier", statement: Statement): void {
    this.#underway = kind;
    this.#ports.send(statement);
  }

  #look(): void {
    this.#send("look", { kind: "look", position: this.#end.position + 1 });
  }

  /** An append, or the barrier behind one that was found, has returned normally. */
  #appended(answer: StatementAnswer): void {
    const entry = this.#entries.shift();
    if (entry === undefined) return;
    this.#end = { position: entry.position, nonce: entry.nonce };
    if (entry.position > this.acknowledged.position) {
      this.#kept.add(entry);
      this.acknowledged = this.#end;
      this.#ports.note(this.#end);
      this.#ports.acknowledged(this.#end, outcomeOf(answer, this.#durability) === "weak");
    }
    this.#next();
  }

  #looked({ group, entries: [found] }: StatementAnswer): void {
    const entry = this.#entries[0];
    if (found !== undefined && entry !== undefined && found.nonce === entry.nonce)
      this.#send("barrier", { kind: "barrier", node: this.#node });
    else if (found !== undefined || !this.#isOwner(group)) this.#fence();
    else if (group.position < this.#end.position) this.#rewind(group);
    else this.#next();
  }

  #isOwner(group: GroupRow): boolean {
    return group.epoch === this.epoch && group.incarnation === this.#incarnation && !group.isStopped;
  }

  /** The log ends before what was there: a PostgreSQL without it has been promoted. */
  #rewind(group: GroupRow): void {
    const again = this.#kept.after(group, this.#end.position);
    if (again === null) {
      this.end();
      this.#ports.lost();
      return;
    }
    this.#end = { position: group.position, nonce: group.nonce };
    this.#entries.unshift(...again);
    this.#next();
  }

  #fence(): void {
    this.end();
    this.#ports.fenced();
  }
}
