/** A moment by two clocks of one machine: one that stops while the machine is suspended, and one that somebody may set. */
export interface Instant {
  monotonicMs: number;
  wallMs: number;
}

/** One commit of one file. */
export interface LogRow {
  file: string;
  /** Number of the commit in its file. */
  number: number;
  content: Uint8Array;
}

/** One position of the log. The nonce names its content: whoever has the same nonce at a position has the same log up to there. */
export interface LogEntry {
  position: number;
  epoch: number;
  nonce: string;
  /** Nonce of the position before; "" at the first. */
  previous: string;
  body: readonly LogRow[];
}

/** A place in the log, and what stands there. Position 0 is the empty log, with the nonce "". */
export interface Place {
  position: number;
  nonce: string;
}

export interface GroupRow extends Place {
  /** Counts the losses that an operator has accepted. */
  history: number;
  isStopped: boolean;
  epoch: number;
  owner: string;
  incarnation: string;
  /** The place behind which the log begins: entries up to there were dropped. Its start: none was. */
  base: Place;
}

export interface NodeRow {
  node: string;
  incarnation: string;
  /** Moved by each renewal of the node. */
  counter: number;
  /** The last position that the node shows, and the last that it knows to be acknowledged. */
  applied: number;
  known: number;
  /** Epoch with which the node acts as owner; null: it does not. */
  acting: number | null;
}

/** Names one content of a node's row: what a statement expects to find. */
export interface Seen {
  node: string;
  incarnation: string;
  counter: number;
}

/** A group that may be taken: its owner as it was seen. `counter` null: whoever is named does not act as the owner. */
export interface Vacancy {
  epoch: number;
  owner: string;
  incarnation: string;
  counter: number | null;
}

/** Everything that a node asks of PostgreSQL. Each is one autocommit statement, and what it expects is checked on locked rows. */
export type Statement =
  | { kind: "look"; position: number }
  | { kind: "read"; from: number; limit: number }
  | { kind: "join"; node: string; incarnation: string; replaces: Seen | null }
  | ({ kind: "renew" } & NodeRow)
  | { kind: "barrier"; node: string }
  | { kind: "append"; incarnation: string; epoch: number; entry: LogEntry }
  | { kind: "take"; node: string; incarnation: string; from: Vacancy }
  | { kind: "terminate"; incarnation: string }
  | { kind: "stop"; history: number };

/** The settings that decide how durable a commit is, with the moment at which the session has read them. */
export interface Settings {
  standbyNames: string;
  loadedAt: string;
}

export interface StatementAnswer {
  /** Whether the statement has found what it expected, and changed it. Reads: true. */
  isDone: boolean;
  group: GroupRow;
  nodes: readonly NodeRow[];
  entries: readonly LogEntry[];
  /** Whether PostgreSQL has sent a notice: a wait for the standby that was cancelled returns as success with one. */
  hasNotice: boolean;
  before: Settings;
  /** Read by a statement of its own, after the end of the one that is answered. */
  after: Settings;
}

/** The server behind a connection. */
export interface LogServer {
  system: string;
  timeline: number;
  isStandby: boolean;
}

export type Durability = "standby" | "single";
/** "unknown": a success that proves nothing. "weak": it is in one PostgreSQL, where a standby was asked for. */
export type Outcome = "durable" | "weak" | "unknown";

/** Says what the normal end of a write proves. A setting that was changed and changed back meanwhile has another loading time. */
export function outcomeOf(answer: StatementAnswer, durability: Durability): Outcome {
  const { before, after } = answer;
  if (answer.hasNotice) return "unknown";
  if (before.standbyNames !== after.standbyNames || before.loadedAt !== after.loadedAt) return "unknown";
  return durability === "standby" && before.standbyNames === "" ? "weak" : "durable";
}
