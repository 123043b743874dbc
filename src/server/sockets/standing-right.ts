import type { MaybePromise } from "../../kernel/maybe-promise.ts";
import type { LookedAt, LookupWatch } from "../access/lookups/lookups.ts";
import type { EndingWatch } from "../access/lookups/watches.ts";

/** Who holds a right that lasts, and what its rule answers. */
export interface RightOwner {
  /**
   * Asks the rule again. `watch` learns what the rule looks at. Returns what applies the answer, which is called unless the
   * right has ended meanwhile; null: there is nothing to ask for.
   */
  ask(watch: LookupWatch): MaybePromise<(() => void) | null>;
  /** A commit has changed what the rule looked at. It has not been announced yet. */
  touched(): void;
  /**
   * A commit that is announced has changed what the rule looks at with each record (`StandingRight.sight`), or a file of it was
   * deleted. The answer of the rule is as good as before. Absent: nothing uses `sight`.
   */
  sightTouched?(): void;
  /**
   * The rule is not answered at once: holds back what is delivered by this right, until the function returned is called.
   * Absent: what is delivered waits for `StandingRights.review`.
   */
  hold?(): () => void;
}

/** Begins to watch for a right. */
export interface RightWatches {
  rule(right: StandingRight): EndingWatch;
  sight(right: StandingRight): EndingWatch;
}

/** What one answer of a rule rests on. Nothing is kept for a rule that looks at nothing. */
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

  /** Whether it has looked at something that the other one has not. */
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
  /** null: not owned yet. */
  owner: RightOwner | null = null;
  /** What its rule looked at has changed since it was asked last. */
  isStale = false;
  /** How many commits have changed what its rule looked at, since the first question. */
  commitCount = 0;
  /** null: its rule is not being awaited. */
  asking: Promise<void> | null = null;
  /** The question after `asking`, for those who need an answer that is not older than a later commit. */
  next: Promise<void> | null = null;
  #release: (() => void) | null = null;
  readonly #watches: RightWatches;
  #looked: Looked;
  /** Of the question before the one that is being answered; null: none is. */
  #before: Looked | null = null;
  #sight: Looked | null = null;
  #isEnded = false;
  #lastCommit = 0;

  constructor(watches: RightWatches) {
    this.#watches = watches;
    this.#looked = this.#newLooked();
  }

  /** In the latest question, or with a record. */
  get hasLooked(): boolean {
    return this.#looked.hasLooked || this.#sight?.hasLooked === true;
  }

  /** Whether the question that is being answered has looked at something that the one before had not. */
  get looksElsewhere(): boolean {
    return this.#before !== null && this.#looked.isBeyond(this.#before);
  }

  /** For what the rule looks at with each record. It is kept until the right ends. */
  get sight(): LookupWatch {
    this.#sight ??= new Looked(() => this.#watches.sight(this));
    return this.#sight;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** For the first question. */
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

  /** A commit, by a number of its own, has changed what the rule looked at. May be called more than once for a commit. */
  committed(commit: number): void {
    if (commit !== this.#lastCommit) this.commitCount++;
    this.#lastCommit = commit;
    this.touch();
  }

  touch(): void {
    if (this.#isEnded || this.isStale) return;
    this.isStale = true;
    this.owner?.touched();
  }

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
    return new Looked(() => this.#watches.rule(this));
  }
}
