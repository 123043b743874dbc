import {
  ARRIVAL_PAUSE_MS,
  ARRIVAL_PAUSES_MAX,
  ARRIVALS_READING_MAX_BYTES,
  ARRIVALS_TURN_MAX_BYTES,
} from "../limits.ts";
import type { PresenceListener } from "./presence-channel.ts";

/** Listeners that wait for the `presence_sync` of a channel with many entries. */
export interface Arrivals {
  readonly isEmpty: boolean;
  add(listener: PresenceListener): void;
  delete(listener: PresenceListener): void;
}

/**
 * Sends long syncs in turns: those who arrive together get one text, a few of them at a time, and the next ones when these
 * have read it. Ten thousand who come back at once would otherwise each have a list of ten thousand made and kept for them.
 */
export function createArrivals(deps: {
  /** The `presence_sync` of now. */
  sync(): string;
  /** Sends it; changes follow. */
  send(listener: PresenceListener, sync: string): void;
  /** How many have not read theirs. */
  readingCount(): number;
  pause(delayMs: number): Promise<void>;
}): Arrivals {
  const waiting = new Set<PresenceListener>();
  let isRunning = false;

  const turn = async (): Promise<void> => {
    await deps.pause(0);
    if (waiting.size === 0) return;
    let text = deps.sync();
    // Somebody who never reads must not keep the others waiting for long.
    for (let pauses = 0; deps.readingCount() * text.length > ARRIVALS_READING_MAX_BYTES; pauses++) {
      if (pauses === ARRIVAL_PAUSES_MAX) break;
      await deps.pause(ARRIVAL_PAUSE_MS);
      text = deps.sync();
    }
    let left = Math.max(1, Math.floor(ARRIVALS_TURN_MAX_BYTES / text.length));
    for (const listener of waiting) {
      waiting.delete(listener);
      if (!listener.isClosed) deps.send(listener, text);
      if (--left === 0) break;
    }
  };
  const run = async (): Promise<void> => {
    isRunning = true;
    try {
      while (waiting.size > 0) await turn();
    } finally {
      isRunning = false;
    }
  };
  return {
    get isEmpty() {
      return waiting.size === 0;
    },
    add(listener) {
      waiting.add(listener);
      if (isRunning) return;
      run().catch(() => {
        for (const one of waiting) one.closeAsSlow();
        waiting.clear();
      });
    },
    delete: (listener) => void waiting.delete(listener),
  };
}
