import type { Clock } from "../../kernel/clock.ts";
import type { Logger } from "../../kernel/logger.ts";
import { chain, isPromise, type MaybePromise } from "../../kernel/maybe-promise.ts";
import { Scheduler } from "../../kernel/time/scheduler.ts";
import type { LookedAt, LookupWatch, RuleAddress } from "../access/lookups/lookups.ts";
import { type EndingWatch, LookupWatches } from "../access/lookups/watches.ts";
import type { Change } from "../db/index.ts";

/** The holder of a standing right, which evaluates its rule and applies the answers. */
export interface RightOwner {
  /**
   * Evaluates the rule again, and reports its lookups to `watch`. Returns a function that applies the answer, which is called
   * unless the right has ended meanwhile; null when there is nothing to evaluate.
   */
  ask(watch: LookupWatch): MaybePromise<(() => void) | null>;
  /** Called when a commit has changed the rule's lookups, before it is announced. */
  touched(): void;
  /**
   * Called when an announced commit has changed what the rule looks up with each record (`StandingRight.sight`), or a file of it
   * was deleted. The rule's answer stays valid. Absent: nothing uses `sight`.
   */
  sightTouched?(): void;
  /**
   * Called when the rule is awaited: holds back deliveries by this right until the returned function is called. Absent:
   * deliveries wait for `StandingRights.review`.
   */
  hold?(): () => void;
}

/** Lookups behind one answer of a rule. Nothing is kept for a rule that looks nothing up. */
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
    // An abandoned rule may still look something up.
    if (this.#isOver) return;
    this.#inner ??= this.#begin();
    this.#inner.lookedAt(place);
  }

  /** Whether this evaluation has looked something up that `other` has not. */
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
 * A right that outlasts one request: its rule is evaluated again when its lookups change (`StandingRights`). Lookups are watched
 * from before the first evaluation, so that no commit is missed while a rule is awaited.
 */
export class StandingRight {
  /** Holder of the right; null until it is granted. */
  owner: RightOwner | null = null;
  /** Whether data that the rule looked up has changed since its last evaluation. */
  isStale = false;
  /** Counts the commits that have changed the rule's lookups since the first evaluation. */
  commitCount = 0;
  /** Pending evaluation of the rule; null when none is awaited. */
  asking: Promise<void> | null = null;
  #release: (() => void) | null = null;
  readonly #watches: LookupWatches<StandingRight>;
  readonly #sights: LookupWatches<StandingRight>;
  #looked: Looked;
  /** Lookups of the evaluation before the pending one; null when none is pending. */
  #before: Looked | null = null;
  #sight: Looked | null = null;
  #isEnded = false;
  #lastCommit = 0;

  constructor(watches: LookupWatches<StandingRight>, sights: LookupWatches<StandingRight>) {
    this.#watches = watches;
    this.#sights = sights;
    this.#looked = this.#newLooked();
  }

  /** Whether the rule has looked something up, in the latest evaluation or with a record. */
  get hasLooked(): boolean {
    return this.#looked.hasLooked || this.#sight?.hasLooked === true;
  }

  /** Whether the pending evaluation has looked something up that the previous one had not. */
  get looksElsewhere(): boolean {
    return this.#before !== null && this.#looked.isBeyond(this.#before);
  }

  /** Records what the rule looks up with each record, until the right ends. */
  get sight(): LookupWatch {
    this.#sight ??= new Looked(() => this.#sights.watch(this));
    return this.#sight;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Records the lookups of the first evaluation. */
  get watch(): LookupWatch {
    return this.#looked;
  }

  /** Begins another evaluation. Call `answered` when it is done: until then, the lookups of the earlier one are watched too. */
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

  /** Marks the right stale after a commit that changed its lookups. May be called more than once per commit. */
  committed(commit: number): void {
    if (commit !== this.#lastCommit) this.commitCount++;
    this.#lastCommit = commit;
    this.touch();
  }

  /** Marks the right stale: its rule has to be evaluated again. */
  touch(): void {
    if (this.#isEnded || this.isStale) return;
    this.isStale = true;
    this.owner?.touched();
  }

  /** Holds back deliveries by this right until `release` or its end. */
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

/** Resolves when everything queued before it has been evaluated. */
interface Barrier {
  at: number;
  resolve(): void;
}

/**
 * Standing rights of one area: subscriptions, and players in rooms. A commit marks the rights whose lookups it changed as stale,
 * before anything else runs. When commits are announced, in whatever order their files reach the disk, stale rights are evaluated
 * before they deliver anything: a delivery is never of a later commit than the answer that allows it. Many evaluations are spread
 * over several turns of the event loop. [SK221]
 */
export class StandingRights {
  readonly #watches = new LookupWatches<StandingRight>();
  readonly #sights = new LookupWatches<StandingRight>();
  readonly #queue = new Set<StandingRight>();
  readonly #scheduler: Scheduler;
  readonly #nextTurn: (work: () => void) => void;
  readonly #logger: Logger;
  #barriers: Barrier[] = [];
  /** Number of the latest commit that may concern a right. */
  #commit = 0;
  /** Totals of rights ever queued, and ever taken from the queue. */
  #queued = 0;
  #taken = 0;
  #isAsking = false;
  #isScheduled = false;

  constructor(deps: { clock: Clock; logger: Logger }) {
    const { clock } = deps;
    this.#nextTurn = (work) => void clock.after(0, work);
    this.#scheduler = new Scheduler({ now: clock.now, nextTurn: this.#nextTurn });
    this.#logger = deps.logger;
  }

  /** Returns a right whose rule is about to be evaluated. Pass its `watch` to the rule, then set its owner, or end it. */
  begin(): StandingRight {
    return new StandingRight(this.#watches, this.#sights);
  }

  /** Marks the rights that this commit concerns as stale. Call it as soon as rules can see the commit. */
  committed(address: RuleAddress, groups: readonly (readonly Change[])[]): void {
    if (this.#watches.isUnwatched(address)) return;
    const commit = ++this.#commit;
    this.#watches.touched(address, groups, (right) => right.committed(commit));
  }

  /** Evaluates the stale rights that this commit concerns, which is on disk and about to be delivered. */
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

  /** Evaluates the rights that looked up something in a deleted file. */
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

  /**
   * Evaluates the stale ones of these rights. Resolves when their answers are at least as new as this call; null when they
   * already are.
   */
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

  /**
   * Evaluates one right if it is stale, ahead of the queue. Resolves when its answer is at least as new as this call; null when
   * it already is.
   */
  settle(right: StandingRight): Promise<void> | null {
    if (right.isEnded || right.owner === null) return null;
    const { asking } = right;
    if (asking === null) return right.isStale ? this.#ask(right) : null;
    return right.isStale ? asking.then(() => this.settle(right) ?? undefined) : asking;
  }

  /** Marks the right stale, and evaluates it in one of the next turns. */
  askSoon(right: StandingRight): void {
    right.touch();
    if (!right.isStale) return;
    this.#enqueue(right);
    this.#askLater();
  }

  #enqueue(right: StandingRight): void {
    if (this.#queue.has(right)) return;
    this.#queue.add(right);
    this.#queued++;
  }

  /**
   * Queues a right in few steps, as a commit may concern all connections. Appends rights whose deliveries have to be held to
   * `held`.
   */
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
    for (const right of this.#queue) {
      if (!this.#scheduler.hasTime) break;
      this.#queue.delete(right);
      this.#taken++;
      void this.settle(right);
    }
    this.#isAsking = false;
    if (this.#queue.size > 0) this.#askLater();
    const passed = this.#barriers.filter(({ at }) => at <= this.#taken);
    if (passed.length === 0) return;
    this.#barriers = this.#barriers.filter(({ at }) => at > this.#taken);
    for (const { resolve } of passed) resolve();
  }

  #askLater(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#nextTurn(() => {
      this.#isScheduled = false;
      if (this.#queue.size > 0) this.#askSome();
    });
  }

  #ask(right: StandingRight): Promise<void> | null {
    right.isStale = false;
    const { watch, answered } = right.renew();
    const failed = (cause: unknown): void => this.#logger.error("sockets: re-evaluation of a right failed", { cause });
    // An ended right watches nothing, so that the answer may be outdated when it arrives.
    const apply = (answer: (() => void) | null): void => {
      if (!right.isEnded) answer?.();
    };
    try {
      const asking = chain(right.owner?.ask(watch) ?? null, apply);
      if (isPromise(asking)) {
        right.asking = asking.catch(failed).then(() => {
          right.asking = null;
          answered();
          // Stale by a commit during the evaluation. Its announcement may not concern the present lookups.
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
