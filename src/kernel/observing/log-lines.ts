import type { Clock, Millis } from "../clock.ts";
import { shownJson } from "../json/shown.ts";
import { LOG_FACTS_MAX_BYTES, LOG_LINES_MAX, LOG_LINES_MAX_CHARACTERS, LOG_MESSAGE_LENGTH_MAX } from "../limits.ts";
import type { Logger } from "../logger.ts";

export const LOG_LEVELS = ["info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** A line of the server's log. */
export interface LogLine {
  /** Sequence number, counted from the start of the server. */
  seq: number;
  at: Millis;
  level: LogLevel;
  message: string;
  /** JSON, cut and without secrets; null: none. */
  facts: string | null;
}

type Listener = (line: LogLine) => void;

/** Buffers the last log lines in memory, bounded in lines and in characters. */
export class LogLines {
  /** Writes to the log and buffers the line. */
  readonly logger: Logger;
  readonly #clock: Clock;
  /** Lines by sequence number, without gaps. */
  readonly #lines = new Map<number, LogLine>();
  #characters = 0;
  #seq = 0;
  readonly #listeners = new Set<Listener>();

  constructor({ clock, next }: { clock: Clock; next: Logger }) {
    this.#clock = clock;
    const at = (level: LogLevel) => (message: string, facts?: Record<string, unknown>) => {
      next[level](message, facts);
      this.#add(level, message, facts);
    };
    this.logger = { info: at("info"), warn: at("warn"), error: at("error") };
  }

  /** Returns the buffered lines, oldest first. */
  kept(): readonly LogLine[] {
    return [...this.#lines.values()];
  }

  /** Calls `listener` with each line from now on. The function returned ends it. */
  follow(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #add(level: LogLevel, message: string, facts: Record<string, unknown> | undefined): void {
    const line: LogLine = {
      seq: ++this.#seq,
      at: this.#clock.now(),
      level,
      // A config of plain JavaScript may log values that are not text.
      message: String(message).slice(0, LOG_MESSAGE_LENGTH_MAX),
      facts: facts === undefined ? null : factsOf(facts),
    };
    this.#lines.set(line.seq, line);
    this.#characters += sizeOf(line);
    while (this.#lines.size > LOG_LINES_MAX || this.#characters > LOG_LINES_MAX_CHARACTERS) {
      const seq = line.seq - this.#lines.size + 1;
      const oldest = this.#lines.get(seq);
      this.#lines.delete(seq);
      if (oldest !== undefined) this.#characters -= sizeOf(oldest);
    }
    for (const listener of this.#listeners) listener(line);
  }
}

const sizeOf = ({ message, facts }: LogLine): number => 100 + message.length + (facts?.length ?? 0);

/**
 * Serialises the facts of a line without ever throwing: callers are about to handle a failure, and anything may have been thrown.
 */
function factsOf(facts: Record<string, unknown>): string | null {
  try {
    return shownJson(plainOf(facts), LOG_FACTS_MAX_BYTES);
  } catch {
    return UNREADABLE;
  }
}

const UNREADABLE = JSON.stringify("what was thrown cannot be read");

/** Replaces errors by their known properties, which are not enumerable. */
function plainOf(facts: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(facts).map(([name, fact]) => [name, fact instanceof Error ? errorOf(fact, 0) : fact]),
  );
}

function errorOf(error: Error, depth: number): object {
  const { name, message, stack, cause } = error;
  const known = { name, message, stack };
  return cause instanceof Error && depth < 3 ? { ...known, cause: errorOf(cause, depth + 1) } : known;
}
