import { isPromise, type MaybePromise } from "../../kernel/maybe-promise.ts";
import { TurnBudget } from "../../kernel/time/turn-budget.ts";
import { WAITING_MAX_CHARS, WAITING_MESSAGES_MAX, WAITING_PER_CLIENT_MAX_CHARS } from "./limits.ts";

/** A source of work, which runs in order, one piece after the other. */
export interface Source {
  /** The client network (`clientNetwork`). All networks have the same share of the event loop. */
  readonly client: string;
}

/** Work of a source. Must not throw or reject. */
type Work = () => MaybePromise<void>;

interface Waiting {
  chars: number;
  work: Work;
}

/** Queue of a source whose work is running or waiting. */
interface Line {
  readonly source: Source;
  waiting: Waiting[];
  isBusy: boolean;
}

/** A client network with waiting work. */
interface Client {
  chars: number;
  /** Lines whose next work can begin, in the order of their turns. */
  readonly ready: Set<Line>;
}

/**
 * Handles the messages of all connections in fair turns. Many sockets may have messages at the same moment, and the event loop
 * would handle all of them before anything else: here messages have one budget a turn, and the rest waits. Turns go
 * round robin over client networks, and over the connections of one network. [SK2]
 */
export class MessageTurns {
  readonly #budget: TurnBudget;
  readonly #lines = new Map<Source, Line>();
  readonly #clients = new Map<string, Client>();
  /** Clients with ready lines, in the order of their turns. */
  readonly #ready = new Set<Client>();
  /** Source of the work that is running and has not returned; null when there is none. */
  #current: Source | null = null;
  #waitingChars = 0;

  constructor(budget = new TurnBudget()) {
    this.#budget = budget;
  }

  /** Handles a message of `chars` characters, now or in its turn. false: dropped, because too much waits already. */
  take(source: Source, chars: number, work: Work): boolean {
    const line = this.#lines.size === 0 ? undefined : this.#lines.get(source);
    if (line === undefined && this.#budget.hasTime && this.#current !== source) {
      this.#begin(source, work);
      return true;
    }
    const isFull =
      (line?.waiting.length ?? 0) >= WAITING_MESSAGES_MAX ||
      (this.#clients.get(source.client)?.chars ?? 0) + chars > WAITING_PER_CLIENT_MAX_CHARS ||
      this.#waitingChars + chars > WAITING_MAX_CHARS;
    if (isFull) return false;
    this.#queue(source, { chars, work });
    return true;
  }

  /** Whether work of this source is running or waiting. */
  has(source: Source): boolean {
    return this.#current === source || this.#lines.has(source);
  }

  /** Drops the waiting work of this source. */
  drop(source: Source): void {
    const line = this.#lines.get(source);
    if (line === undefined) return;
    this.#lines.delete(source);
    const client = this.#clients.get(source.client);
    if (client === undefined) return;
    client.ready.delete(line);
    if (client.ready.size === 0) this.#ready.delete(client);
    for (const { chars } of line.waiting.splice(0)) this.#count(source.client, -chars - 1);
  }

  #queue(source: Source, waiting: Waiting): void {
    const line = this.#lines.get(source) ?? { source, waiting: [], isBusy: this.#current === source };
    this.#lines.set(source, line);
    line.waiting.push(waiting);
    // Counted with one more than its length, so that a client with an empty message waiting is known.
    const client = this.#count(source.client, waiting.chars + 1);
    if (!line.isBusy) this.#makeReady(client, line);
  }

  #count(name: string, chars: number): Client {
    const client = this.#clients.get(name) ?? { chars: 0, ready: new Set<Line>() };
    client.chars += chars;
    this.#waitingChars += chars;
    if (client.chars === 0) this.#clients.delete(name);
    else this.#clients.set(name, client);
    return client;
  }

  #makeReady(client: Client, line: Line): void {
    client.ready.add(line);
    this.#ready.add(client);
    this.#budget.wait(this.#run);
  }

  readonly #run = (): void => {
    for (const client of this.#ready) {
      if (!this.#budget.hasTime) break;
      const [line] = client.ready;
      const next = line?.waiting.shift();
      this.#ready.delete(client);
      if (line === undefined || next === undefined) continue;
      client.ready.delete(line);
      // Last in turn, behind the other networks.
      if (client.ready.size > 0) this.#ready.add(client);
      this.#count(line.source.client, -next.chars - 1);
      line.isBusy = true;
      this.#begin(line.source, next.work);
    }
    if (this.#ready.size > 0) this.#budget.wait(this.#run);
  };

  /** Runs work. Nearly all is done when it returns: only work that is awaited, or has others behind it, needs a line. */
  #begin(source: Source, work: Work): void {
    const around = this.#current;
    if (around !== null && !this.#lines.has(around)) {
      this.#lines.set(around, { source: around, waiting: [], isBusy: true });
    }
    this.#current = source;
    const startedAt = this.#budget.now();
    const running = work();
    this.#budget.charge(this.#budget.now() - startedAt);
    this.#current = around;
    if (isPromise(running)) {
      const line = this.#lines.get(source) ?? { source, waiting: [], isBusy: true };
      this.#lines.set(source, line);
      void running.then(() => this.#ended(line));
    } else if (this.#lines.size > 0) {
      const line = this.#lines.get(source);
      if (line !== undefined) this.#ended(line);
    }
  }

  #ended(line: Line): void {
    line.isBusy = false;
    if (this.#lines.get(line.source) !== line) return; // It was dropped.
    const client = this.#clients.get(line.source.client);
    if (line.waiting.length === 0 || client === undefined) this.#lines.delete(line.source);
    else this.#makeReady(client, line);
  }
}
