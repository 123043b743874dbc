import type { Clock } from "../../kernel/clock.ts";
import { STOP_MAX_MS, UNDER_WAY_MAX_MS } from "../../kernel/limits.ts";
import type { Logger } from "../../kernel/logger.ts";
import { SECOND_MS } from "../../kernel/time/duration.ts";
import { stopAll } from "../../kernel/time/stop.ts";

export interface Stoppable {
  stop(): void | Promise<void>;
}

/** The deadline of work in progress, which is then cut off. */
const UNDER_WAY_ENDED_MS = UNDER_WAY_MAX_MS + SECOND_MS;
/** The deadline for saving, when everything must be on its way to the disk. */
const SAVED_MS = STOP_MAX_MS - SECOND_MS;

/**
 * The phases of a stop, one after another; the parts of a phase stop together. Each has a deadline, counted from the beginning of
 * the stop. Only databases have none: a file that is still open must not be given to another process.
 */
const PHASES = {
  // First: rooms answer work in progress while everything they need is still there, and must not mistake the closed connections for
  // players who leave.
  rooms: UNDER_WAY_ENDED_MS,
  realtime: UNDER_WAY_ENDED_MS,
  // Requests, with what they wait for: those that send are answered as soon as nothing more is sent.
  requests: UNDER_WAY_ENDED_MS,
  // Writes of requests and rooms cause hooks, which use the parts of all later phases.
  hooks: SAVED_MS,
  accounts: SAVED_MS,
  resources: SAVED_MS,
  records: SAVED_MS,
  databases: null,
  // What the closed databases have last committed leaves the machine.
  copies: STOP_MAX_MS,
} as const;
export type Phase = keyof typeof PHASES;

export type Stopping = ReturnType<typeof createStopping>;

/** Collects the opened parts of a platform that have to be stopped. */
export function createStopping(deps: { clock: Clock; logger: Logger }) {
  const parts: { phase: string; name: string; part: Stoppable }[] = [];
  return {
    add: (phase: Phase, name: string, part: Stoppable): void => void parts.push({ phase, name, part }),
    /** Stops all parts, whatever one of them throws. Errors: an AggregateError of what they threw, after the last of them. */
    stop(): Promise<void> {
      const phases = Object.entries(PHASES).map(([phase, untilMs]) =>
        parts
          .filter((part) => part.phase === phase)
          .map(({ name, part }) => ({ name, untilMs, stop: () => part.stop() })),
      );
      return stopAll(phases, deps);
    },
  };
}
