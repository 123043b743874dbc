import {
  ARRIVAL_PAUSE_MS,
  ARRIVAL_PAUSES_MAX,
  ARRIVALS_READING_MAX_BYTES,
  ARRIVALS_TURN_MAX_BYTES,
} from "../limits.ts";

interface Reader {
  readonly isClosed: boolean;
  readonly identity: number;
  closeAsSlow(): void;
}

/** Listeners that wait for the `presence_sync` of a channel with many entries. */
export interface Arrivals<Listener extends Reader> {
  readonly isEmpty: boolean;
  /** One whose identity changes before it has the text is not sent it. */
  add(listener: Listener): void;
  delete(listener: Listener): void;
}

/**
 * Sends long syncs in turns: listeners that arrive together get one text, a few listeners at a time, and the next ones when
 * these have read it. Ten thousand clients that reconnect would otherwise each need a list of ten thousand in memory. [RT103]
 */
export function createArrivals<Listener extends Reader>(deps: {
  /** The present `presence_sync`. */
  sync(): string;
  /** Sends it to a listener, and changes after it. */
  send(listener: Listener, sync: string): void;
  /** Listeners that have not read their sync yet. */
  readingCount(): number;
  /** Resolves when something may be sent on the channel; null: it may. */
  released(): Promise<void> | null;
  pause(delayMs: number): Promise<void>;
}): Arrivals<Listener> {
  /** With the identity of each when it was added. */
  const waiting = new Map<Listener, number>();
  let isRunning = false;

  const turn = async (): Promise<void> => {
    await deps.pause(0);
    if (waiting.size === 0) return;
    let text = deps.sync();
    // A client that never reads must not hold up the others for long.
    for (let pauses = 0; deps.readingCount() * text.length > ARRIVALS_READING_MAX_BYTES; pauses++) {
      if (pauses === ARRIVAL_PAUSES_MAX) break;
      await deps.pause(ARRIVAL_PAUSE_MS);
      text = deps.sync();
    }
    for (let held = deps.released(); held !== null; held = deps.released()) {
      await held;
      text = deps.sync();
    }
    let left = Math.max(1, Math.floor(ARRIVALS_TURN_MAX_BYTES / text.length));
    for (const [listener, identity] of waiting) {
      waiting.delete(listener);
      if (!listener.isClosed && listener.identity === identity) deps.send(listener, text);
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
      waiting.set(listener, listener.identity);
      if (isRunning) return;
      run().catch(() => {
        for (const one of waiting.keys()) one.closeAsSlow();
        waiting.clear();
      });
    },
    delete: (listener) => void waiting.delete(listener),
  };
}
