import type { LogEntry, Place } from "../../../src/server/cluster/protocol/statements.ts";
import type { World } from "./world.ts";

/** An answer may be so old at most: what is a lease old is applied at a renewal, and the trust in that one ends before the next. */
const OLD_MAX_MS = 30_000;

/** The least that an answer has to show, as of the moment of its request. */
export interface Expected {
  era: number;
  newest: number;
  revoked: number;
}

/** Faults that a history may have: with some of them acknowledged writes can get lost, and then not in silence. */
export type Mode = "lossless" | "standby given up" | "restored";

/** Compares what clients were told with what they may be told, and at the end with the log. Errors are thrown where they are found. */
export class Checker {
  readonly #world: World;
  readonly mode: Mode;
  takeovers = 0;
  alarms = 0;
  acknowledgements = 0;
  answers = 0;
  revocations = 0;
  /** Whether PostgreSQL has lost something that it had confirmed. */
  readonly #hasLost: () => boolean;
  hasLostNotes = false;
  /** Counts the losses that were accepted. */
  #era = 0;
  #newest = 0;
  #revoked = 0;
  readonly #committed = new Set<string>();
  #acknowledged = new Map<string, number>();
  /** Nonces of positions that were acknowledged or shown. */
  #shown = new Map<number, string>();
  readonly #weak = new Set<string>();
  #newestAt: { atMs: number; position: number }[] = [];

  /** The history that PostgreSQL is in. A node on a former one that still runs has not seen it yet. */
  readonly #history: () => number;

  constructor(world: World, mode: Mode, { hasLost, history }: { hasLost: () => boolean; history: () => number }) {
    this.#world = world;
    this.#hasLost = hasLost;
    this.#history = history;
    this.mode = mode;
  }

  expected(): Expected {
    return { era: this.#era, newest: this.#newest, revoked: this.#revoked };
  }

  committed(body: string): void {
    this.#committed.add(body);
  }

  /** The owner takes a place to be in the log. */
  appended({ position, nonce }: Place, history: number, isWeak: boolean): void {
    if (isWeak) this.#weak.add(nonce);
    this.#see(position, nonce, history);
  }

  acknowledged(body: string, position: number, history: number): void {
    this.acknowledgements += 1;
    if (this.mode !== "lossless" && history !== this.#history()) return;
    this.#acknowledged.set(body, position);
    this.#reached(position);
  }

  hasRevoked(position: number): void {
    this.revocations += 1;
    this.#revoked = Math.max(this.#revoked, position);
    this.#reached(position);
  }

  answered(content: readonly string[], position: number, history: number, expected: Expected): void {
    this.answers += 1;
    if (position > 0) this.#see(position, content[position - 1] ?? "nothing", history);
    if (this.mode !== "lossless" || expected.era !== this.#era) return;
    if (position < expected.newest)
      throw new Error(`an answer of the owner shows ${position}, before it ${expected.newest} was acknowledged`);
    if (position < expected.revoked)
      throw new Error(`an answer shows ${position}, and uses what ${expected.revoked} has revoked`);
    const old = this.#newestAt.findLast(({ atMs }) => atMs < this.#world.now - OLD_MAX_MS);
    if (position < (old?.position ?? 0))
      throw new Error(`an answer shows ${position}, which is older than ${OLD_MAX_MS} ms`);
  }

  alarmed(): void {
    this.alarms += 1;
    if (!this.#hasLost()) throw new Error("an alarm, and nothing was lost");
  }

  /** An operator goes on with what the log has. */
  accepted(entries: readonly LogEntry[]): void {
    this.#era += 1;
    [this.#newest, this.#revoked, this.#newestAt] = [0, 0, []];
    this.#requireStrong(entries);
    this.#shown = new Map([...this.#shown].filter(([position, nonce]) => entries[position - 1]?.nonce === nonce));
    const bodies = new Set(entries.flatMap(({ body }) => body.map(({ file }) => file)));
    this.#acknowledged = new Map([...this.#acknowledged].filter(([body]) => bodies.has(body)));
  }

  /** No entry of a former owner is behind the place at which the group was taken. */
  requireNoneLate(entries: readonly LogEntry[], takes: readonly { epoch: number; position: number }[]): void {
    if (this.#hasLost()) return;
    for (const { epoch, position } of takes) {
      const next = entries[position];
      if (next !== undefined && next.epoch < epoch)
        throw new Error(`an entry of epoch ${next.epoch} is behind the takeover of epoch ${epoch}`);
    }
  }

  /** Compares everything with the final log. */
  finish(entries: readonly LogEntry[], notes: readonly Place[]): void {
    const positions = new Map<string, number>();
    let [position, epoch, previous] = [0, 0, ""];
    for (const entry of entries) {
      position += 1;
      if (entry.position !== position || entry.previous !== previous)
        throw new Error(`the log has no chain at ${position}`);
      if (entry.epoch < epoch && !this.#hasLost())
        throw new Error(`an entry of epoch ${entry.epoch} follows one of ${epoch}`);
      [epoch, previous] = [entry.epoch, entry.nonce];
      for (const { file: body } of entry.body) {
        if (positions.has(body)) throw new Error(`${body} is in the log twice`);
        if (!this.#committed.has(body)) throw new Error(`${body} was never committed`);
        positions.set(body, position);
      }
    }
    this.#requireStrong(entries);
    for (const { position: noted, nonce } of notes)
      if (noted > 0 && entries[noted - 1]?.nonce !== nonce)
        throw new Error(`a node knows ${noted}, which the log lacks, in silence`);
    const isExcused = this.mode !== "lossless" && this.hasLostNotes;
    for (const [body, at] of this.#acknowledged)
      if (positions.get(body) !== at && !isExcused)
        throw new Error(`${body} was acknowledged at ${at} and is at ${positions.get(body)}`);
    for (const [at, nonce] of this.#shown)
      if (entries[at - 1]?.nonce !== nonce && !isExcused)
        throw new Error(`${at} was shown as ${nonce} and is ${entries[at - 1]?.nonce}`);
  }

  /** Requires what was acknowledged with a standby: only a restore from a backup loses that. */
  #requireStrong(entries: readonly LogEntry[]): void {
    if (this.mode === "restored") return;
    for (const [at, nonce] of this.#shown)
      if (!this.#weak.has(nonce) && entries[at - 1]?.nonce !== nonce && this.mode === "lossless")
        throw new Error(`${at} was acknowledged with a standby as ${nonce}, and the log has ${entries[at - 1]?.nonce}`);
  }

  #see(position: number, nonce: string, history: number): void {
    if (this.mode !== "lossless" && history !== this.#history()) return;
    const seen = this.#shown.get(position);
    if (seen !== undefined && seen !== nonce && !this.#hasLost())
      throw new Error(`${position} was shown as ${seen} and as ${nonce}`);
    this.#shown.set(position, nonce);
  }

  #reached(position: number): void {
    if (position <= this.#newest) return;
    this.#newest = position;
    this.#newestAt.push({ atMs: this.#world.now, position });
  }
}
