import type { Random } from "../support/random.ts";

/** State of a thing as text; null: it is not there. */
export type State = string | null;

export interface Change {
  thing: string;
  next: State;
}

/**
 * Record of the requests that the server accepted, and of those under way when it was killed. Of these, each request has happened whole or not at
 * all. Every thing belongs to one writer, which asks for one change at a time.
 */
export class Ledger {
  readonly #known = new Map<string, string>();
  readonly #unanswered = new Set<readonly Change[]>();
  #answeredCount = 0;

  get answeredCount(): number {
    return this.#answeredCount;
  }

  get unansweredCount(): number {
    return this.#unanswered.size;
  }

  state(thing: string): State {
    return this.#known.get(thing) ?? null;
  }

  /** Returns the things of this writer that are there. */
  own(prefix: string): string[] {
    return [...this.#known.keys()].filter((thing) => thing.startsWith(prefix));
  }

  /** Returns the things of this writer that are there, or could be. */
  mentioned(prefix: string): string[] {
    const unanswered = [...this.#unanswered].flatMap((changes) => changes.map(({ thing }) => thing));
    return [...new Set([...this.#known.keys(), ...unanswered])].filter((thing) => thing.startsWith(prefix));
  }

  /** One of them; null when there is none. */
  pick(prefix: string, random: Random): string | null {
    const own = this.own(prefix);
    return own.length === 0 ? null : random.pick(own);
  }

  /** `send` throws when the connection broke: then nobody knows. */
  async attempt(changes: readonly Change[], send: () => Promise<{ status: number; body: unknown }>): Promise<void> {
    this.#unanswered.add(changes);
    const { status, body } = await send();
    if (status >= 300) throw new RefusedError(changes, status, body);
    this.#unanswered.delete(changes);
    this.#answeredCount++;
    for (const change of changes) this.#settle(change);
  }

  /** Compares with what is there now, and takes that for known. Gives every difference that cannot be. */
  compare(present: ReadonlyMap<string, string>): string[] {
    const problems: string[] = [];
    const unknown = new Set<string>();
    for (const changes of this.#unanswered) {
      const isDone = changes.every(({ thing, next }) => (present.get(thing) ?? null) === next);
      const isUndone = changes.every(({ thing }) => (present.get(thing) ?? null) === this.state(thing));
      if (!isDone && !isUndone) problems.push(`by halves: ${JSON.stringify(changes)}`);
      for (const { thing } of changes) unknown.add(thing);
    }
    for (const thing of new Set([...present.keys(), ...this.#known.keys()])) {
      if (unknown.has(thing)) continue;
      const [is, shouldBe] = [present.get(thing) ?? null, this.state(thing)];
      if (is !== shouldBe) problems.push(`${thing} is ${shorten(is)}, and not ${shorten(shouldBe)}`);
    }
    this.#unanswered.clear();
    this.#known.clear();
    for (const [thing, state] of present) this.#known.set(thing, state);
    return problems;
  }

  #settle({ thing, next }: Change): void {
    if (next === null) this.#known.delete(thing);
    else this.#known.set(thing, next);
  }
}

/** Nothing that the load asks for is wrong: an error is one of the server. */
export class RefusedError extends Error {
  constructor(changes: readonly Change[], status: number, body: unknown) {
    super(`${JSON.stringify(changes)} was answered ${status} ${JSON.stringify(body)}`);
    this.name = "RefusedError";
  }
}

const shorten = (state: State): string => (state === null ? "not there" : JSON.stringify(state.slice(0, 80)));
