import type { Clock, Millis } from "../../kernel/clock.ts";
import type { Logger } from "../../kernel/logger.ts";
import { chain, isPromise } from "../../kernel/maybe-promise.ts";
import type { RuleAddress } from "../access/lookups/lookups.ts";
import { LookupWatches } from "../access/lookups/watches.ts";
import type { Change } from "../db/index.ts";
import { RIGHTS_TURN_MS } from "./limits.ts";
import { StandingRight } from "./standing-right.ts";

/** Waits until everything that was queued before it has been asked. */
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
  /** The number of the last commit that may concern a right. */
  #commit = 0;
  /** How many were ever queued, and taken from the queue. */
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

  /** A right that is about to be asked for. Give its `watch` to the rule, then set its owner, or end it. */
  begin(): StandingRight {
    return new StandingRight({
      rule: (right) => this.#watches.watch(right),
      sight: (right) => this.#sights.watch(right),
    });
  }

  /** Marks the rights that this commit concerns. Call it as soon as the commit can be seen by rules. */
  committed(address: RuleAddress, groups: readonly (readonly Change[])[]): void {
    if (this.#watches.isUnwatched(address)) return;
    const commit = ++this.#commit;
    this.#watches.touched(address, groups, (right) => right.committed(commit));
  }

  /** The commit is on disk and is about to be delivered. Asks the marked rights that it concerns. */
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

  /** The file was deleted. */
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

  /** The same for one right, before those that wait. */
  settle(right: StandingRight): Promise<void> | null {
    if (right.isEnded || right.owner === null) return null;
    const { asking } = right;
    if (asking === null) return right.isStale ? this.#ask(right) : null;
    if (!right.isStale) return asking;
    right.next ??= asking.then(() => {
      right.next = null;
      return this.settle(right) ?? undefined;
    });
    return right.next;
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

  /** Few steps, as a commit may concern all connections: `held` gets those only whose deliveries have to be held. */
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
    // What it has looked at is not watched after its end: its answer may be an old one by the time it arrives.
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
