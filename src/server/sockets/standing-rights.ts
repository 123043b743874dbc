import type { Clock, Millis } from "../../kernel/clock.ts";
import type { Logger } from "../../kernel/logger.ts";
import { chain, isPromise, type MaybePromise } from "../../kernel/maybe-promise.ts";
import type { LookedAt, LookupWatch, RuleAddress } from "../access/lookups/lookups.ts";
import { type EndingWatch, LookupWatches } from "../access/lookups/watches.ts";
import type { Change } from "../db/index.ts";
import { RIGHTS_TURN_MS } from "./limits.ts";

/** The holder of a right that lasts, who asks its rule and follows the answers. */
export interface RightOwner {
  /**
   * Asks the rule again. `watch` learns what the rule looks at. Returns a function that applies the answer, which is called
   * unless the right has ended meanwhile; null: there is nothing to ask for.
   */
  ask(watch: LookupWatch): MaybePromise<(() => void) | null>;
  /** Called when a commit has changed what the rule looked at, before it is announced. */
  touched(): void;
  /**
   * Called when a commit that is announced has changed what the rule looks at with each record (`StandingRight.sight`), or a file
   * of it was deleted. The answer of the rule is as good as before. Absent: nothing uses `sight`.
   */
  sightTouched?(): void;
  /**
   * The rule is not answered at once: holds back what is delivered by this right, until the function returned is called.
   * Absent: what is delivered waits for `StandingRights.review`.
   */
  hold?(): () => void;
}

/** The lookups that one answer of a rule rests on. Nothing is kept for a rule that looks at nothing. */
class Looked implements LookupWatch {
  readonly #begin: () => EndingWatch;
  #inner: EndingWatch | null = null;
  #isOver = false;

  constructor(begin: () => EndingWatch) {
    this.#begin = begin;
  }

  get hasLooked(): boolean {
    return this.#inner !== null;
  }

  lookedAt(place: LookedAt): void {
    // A rule that was given up may still look at something.
    if (this.#isOver) return;
    this.#inner ??= this.#begin();
    this.#inner.lookedAt(place);
  }

  /** Whether this one has looked at something that the other one has not. */
  isBeyond(other: Looked): boolean {
    if (this.#inner === null) return false;
    return other.#inner === null || !this.#inner.isWithin(other.#inner);
  }

  end(): void {
    this.#isOver = true;
    this.#inner?.end();
    this.#inner = null;
  }
}

/**
 * A right that lasts longer than one request: its rule is asked again when what it looked at changes (`StandingRights`). It
 * watches from before the first question, so that no commit is missed while a rule is awaited.
 */
export class StandingRight {
  /** null: nobody holds the right yet. */
  owner: RightOwner | null = null;
  /** Something that its rule looked at has changed since it was asked last. */
  isStale = false;
  /** Counts the commits that have changed what its rule looked at, since the first question. */
  commitCount = 0;
  /** null: its rule is not being awaited. */
  asking: Promise<void> | null = null;
  #release: (() => void) | null = null;
  readonly #watches: LookupWatches<StandingRight>;
  readonly #sights: LookupWatches<StandingRight>;
  #looked: Looked;
  /** The lookups of the question before the one that is being answered; null: none is. */
  #before: Looked | null = null;
  #sight: Looked | null = null;
  #isEnded = false;
  #lastCommit = 0;

  constructor(watches: LookupWatches<StandingRight>, sights: LookupWatches<StandingRight>) {
    this.#watches = watches;
    this.#sights = sights;
    this.#looked = this.#newLooked();
  }

  /** Whether the rule has looked something up, in the latest question or with a record. */
  get hasLooked(): boolean {
    return this.#looked.hasLooked || this.#sight?.hasLooked === true;
  }

  /** Whether the question that is being answered has looked at something that the one before had not. */
  get looksElsewhere(): boolean {
    return this.#before !== null && this.#looked.isBeyond(this.#before);
  }

  /** Learns what the rule looks at with each record. It is kept until the right ends. */
  get sight(): LookupWatch {
    this.#sight ??= new Looked(() => this.#sights.watch(this));
    return this.#sight;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Learns what the rule looks at for the first question. */
  get watch(): LookupWatch {
    return this.#looked;
  }

  /** Begins another question. Call the function returned when it is answered: until then, the earlier one is watched too. */
  renew(): { watch: LookupWatch; answered(): void } {
    const before = this.#looked;
    this.#before = before;
    this.#looked = this.#newLooked();
    const answered = (): void => {
      before.end();
      this.#before = null;
    };
    return { watch: this.#looked, answered };
  }

  /** Marks the right for a commit that has changed what the rule looked at. May be called more than once for a commit. */
  committed(commit: number): void {
    if (commit !== this.#lastCommit) this.commitCount++;
    this.#lastCommit = commit;
    this.touch();
  }

  /** Marks the right: its rule has to be asked again. */
  touch(): void {
    if (this.#isEnded || this.isStale) return;
    this.isStale = true;
    this.owner?.touched();
  }

  /** Holds back what is delivered by this right, until `release` or its end. */
  hold(): void {
    this.#release ??= this.owner?.hold?.() ?? null;
  }

  release(): void {
    this.#release?.();
    this.#release = null;
  }

  end(): void {
    this.#isEnded = true;
    this.isStale = false;
    this.#looked.end();
    this.#sight?.end();
    this.release();
  }

  #newLooked(): Looked {
    return new Looked(() => this.#watches.watch(this));
  }
}

/** Resolves when everything that was queued before it has been asked. */
interface Barrier {
  at: number;
  resolve(): void;
}

/**
 * The rights of one area that last: subscriptions, and players in rooms. A commit marks the rights whose rules looked at what
 * it changed, before anything else runs. When commits are announced, in whatever order their files reach the disk, marked
 * rights are asked before anything is delivered by them: what is delivered is then never of a later commit than the answer.
 * Many are asked over several turns of the event loop. [SK221]
 */
export class StandingRights {
  readonly #watches = new LookupWatches<StandingRight>();
  readonly #sights = new LookupWatches<StandingRight>();
  readonly #queue = new Set<StandingRight>();
  readonly #clock: Clock;
  readonly #logger: Logger;
  #barriers: Barrier[] = [];
  /** Numbers the commits that may concern a right. */
  #commit = 0;
  /** Count the rights that were ever queued, and those that were taken from the queue. */
  #queued = 0;
  #taken = 0;
  /** When the time of this turn of the event loop is over; null: nothing has been asked in it. */
  #until: Millis | null = null;
  #isAsking = false;
  #isScheduled = false;

  constructor(deps: { clock: Clock; logger: Logger }) {
    this.#clock = deps.clock;
    this.#logger = deps.logger;
  }

  /** Begins a right whose rule is about to be asked. Give its `watch` to the rule, then set its owner, or end it. */
  begin(): StandingRight {
    return new StandingRight(this.#watches, this.#sights);
  }

  /** Marks the rights that this commit concerns. Call it as soon as the commit can be seen by rules. */
  committed(address: RuleAddress, groups: readonly (readonly Change[])[]): void {
    if (this.#watches.isUnwatched(address)) return;
    const commit = ++this.#commit;
    this.#watches.touched(address, groups, (right) => right.committed(commit));
  }

  /** Asks the marked rights that this commit concerns, which is on disk and about to be delivered. */
  announced(address: RuleAddress, groups: readonly (readonly Change[])[]): void {
    if (!this.#watches.isUnwatched(address)) {
      const held: StandingRight[] = [];
      this.#watches.touched(address, groups, (right) => {
        if (right.isStale) this.#reviewSoon(right, held);
      });
      this.#reviewNow(held);
    }
    if (this.#sights.isUnwatched(address)) return;
    this.#sights.touched(address, groups, (right) => right.owner?.sightTouched?.());
  }

  /** Asks the rights that looked at a file that was deleted. */
  deleted(address: RuleAddress): void {
    const held: StandingRight[] = [];
    const commit = ++this.#commit;
    this.#watches.touchedFile(address, (right) => {
      right.committed(commit);
      this.#reviewSoon(right, held);
    });
    this.#reviewNow(held);
    this.#sights.touchedFile(address, (right) => right.owner?.sightTouched?.());
  }

  /** Asks those that are marked. Resolves when they have answers that are not older than this call; null: they have. */
  review(rights: Iterable<StandingRight>): Promise<void> | null {
    const waiting: StandingRight[] = [];
    for (const right of rights) {
      if (right.isEnded || (!right.isStale && right.asking === null)) continue;
      waiting.push(right);
      this.#enqueue(right);
    }
    if (waiting.length === 0) return null;
    const at = this.#queued;
    this.#askSome();
    if (this.#taken >= at) return this.#awaited(waiting);
    return new Promise<void>((resolve) => this.#barriers.push({ at, resolve })).then(
      () => this.#awaited(waiting) ?? undefined,
    );
  }

  /** Asks one right where it is marked, before those that wait. Resolves when it has an answer that is not older than this call; null: it has. */
  settle(right: StandingRight): Promise<void> | null {
    if (right.isEnded || right.owner === null) return null;
    const { asking } = right;
    if (asking === null) return right.isStale ? this.#ask(right) : null;
    return right.isStale ? asking.then(() => this.settle(right) ?? undefined) : asking;
  }

  /** Marks the right, and asks it in one of the next turns. */
  askSoon(right: StandingRight): void {
    right.touch();
    if (!right.isStale) return;
    this.#enqueue(right);
    this.#nextTurn();
  }

  #enqueue(right: StandingRight): void {
    if (this.#queue.has(right)) return;
    this.#queue.add(right);
    this.#queued++;
  }

  /** Queues a right in few steps, as a commit may concern all connections. `held` gets those whose deliveries have to be held. */
  #reviewSoon(right: StandingRight, held: StandingRight[]): void {
    if (right.isEnded) return;
    this.#enqueue(right);
    if (right.owner?.hold !== undefined) held.push(right);
  }

  #reviewNow(held: readonly StandingRight[]): void {
    this.#askSome();
    for (const right of held) if (right.isStale || right.asking !== null) right.hold();
  }

  #awaited(rights: readonly StandingRight[]): Promise<void> | null {
    const waiting: Promise<void>[] = [];
    for (const right of rights) {
      const settled = right.asking === null ? null : this.settle(right);
      if (settled !== null) waiting.push(settled);
    }
    return waiting.length === 0 ? null : Promise.all(waiting).then(() => {});
  }

  #askSome(): void {
    if (this.#isAsking) return;
    this.#isAsking = true;
    const until = this.#until ?? this.#clock.now() + RIGHTS_TURN_MS;
    this.#until = until;
    for (const right of this.#queue) {
      if (this.#clock.now() >= until) break;
      this.#queue.delete(right);
      this.#taken++;
      void this.settle(right);
    }
    this.#isAsking = false;
    this.#nextTurn();
    const passed = this.#barriers.filter(({ at }) => at <= this.#taken);
    if (passed.length === 0) return;
    this.#barriers = this.#barriers.filter(({ at }) => at > this.#taken);
    for (const { resolve } of passed) resolve();
  }

  #nextTurn(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#clock.after(0, () => {
      this.#isScheduled = false;
      this.#until = null;
      if (this.#queue.size > 0) this.#askSome();
    });
  }

  #ask(right: StandingRight): Promise<void> | null {
    right.isStale = false;
    const { watch, answered } = right.renew();
    const failed = (cause: unknown): void => this.#logger.error("A right could not be asked again", { cause });
    // After its end nothing is watched, and the answer may be outdated by the time it arrives.
    const apply = (answer: (() => void) | null): void => {
      if (!right.isEnded) answer?.();
    };
    try {
      const asking = chain(right.owner?.ask(watch) ?? null, apply);
      if (isPromise(asking)) {
        right.asking = asking.catch(failed).then(() => {
          right.asking = null;
          answered();
          // A commit came meanwhile. When it is announced, it may concern nothing that the rule looks at now.
          if (right.isStale) void this.settle(right);
          else right.release();
        });
        return right.asking;
      }
    } catch (cause) {
      failed(cause);
    }
    answered();
    right.release();
    return null;
  }
}
