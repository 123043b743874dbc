import { AsyncLocalStorage } from "node:async_hooks";
import type { Clock } from "../../../kernel/clock.ts";
import type { Ids } from "../../../kernel/ids.ts";
import { type Change, NO_ORIGIN, type Origin, type OutboxOptions, type Transaction } from "../../db/index.ts";
import { Causes } from "./causes.ts";
import type { Drains } from "./drains.ts";
import type { Place } from "./types.ts";
import { noteHappening, type Watches } from "./watches.ts";

/**
 * The outboxes of all files. Files are opened before the tables whose filters the watches need, so watches and drains are connected
 * later; rows that wait in a file that is opened earlier are passed then.
 */
export class Outboxes {
  readonly #deps: { clock: Clock; ids: Ids; causes: Causes };
  readonly #watchedNamespaces: ReadonlySet<string>;
  /** The origin of the writes of a trigger run. */
  readonly #origin = new AsyncLocalStorage<Origin>();
  #early: Place[] = [];
  #connected: { watches: Watches; drains: Drains } | null = null;

  constructor(watchedNamespaces: ReadonlySet<string>, deps: { clock: Clock; ids: Ids }) {
    this.#watchedNamespaces = watchedNamespaces;
    this.#deps = { ...deps, causes: new Causes() };
  }

  /** The connected watches; null: nothing is connected yet. */
  get watches(): Watches | null {
    return this.#connected?.watches ?? null;
  }

  optionsOf(place: Place): OutboxOptions {
    const options: OutboxOptions = {
      origin: () => this.#origin.getStore() ?? NO_ORIGIN,
      onWaiting: () => this.#wake(place),
    };
    if (place.kind === "system" || !this.#watchedNamespaces.has(place.namespace)) return options;
    const { namespace, instanceId } = place;
    return { ...options, onWritten: (tx, changes) => this.#note(tx, changes, { namespace, instanceId }) };
  }

  connect(watches: Watches, drains: Drains): void {
    this.#connected = { watches, drains };
    for (const place of this.#early) drains.wake(place);
    this.#early = [];
  }

  /** The run counts of the causes of all files. */
  get causes(): Causes {
    return this.#deps.causes;
  }

  /** Runs `work` so that its writes, also later ones, have this origin. */
  runFrom<T>(origin: Origin, work: () => T): T {
    return this.#origin.run(origin, work);
  }

  #wake(place: Place): void {
    if (this.#connected === null) this.#early.push(place);
    else this.#connected.drains.wake(place);
  }

  #note(tx: Transaction, changes: readonly Change[], at: { namespace: string; instanceId: string | null }): void {
    const { namespace, instanceId } = at;
    for (const { table, id, before, after } of changes) {
      const watches = this.#connected?.watches.table(namespace, table);
      if (watches === undefined) continue;
      const event = before === null ? "insert" : after === null ? "delete" : "update";
      const { by } = tx.cause;
      const source = `${namespace}.${table}`;
      noteHappening(tx, watches, { source, event, subjectId: id, instanceId, before, after, by }, this.#deps);
    }
  }
}
