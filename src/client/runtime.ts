import { listen } from "./listeners.ts";

/** Time and randomness, which tests replace. The rest of the client takes them from here. */
export interface Runtime {
  /** Milliseconds since the Unix epoch by this machine's clock, which may be wrong. */
  now(): number;
  /** Runs `work` once after `delayMs`. The returned function cancels it. */
  after(delayMs: number, work: () => void): () => void;
  /** Returns a number from 0 to less than 1. */
  random(): number;
  /** Returns a random UUID. */
  uuid(): string;
}

/**
 * Returns a random digit from 0 to 15. `crypto.randomUUID` is missing on insecure origins, and React Native may have no `crypto`
 * at all.
 */
function randomDigit(): number {
  const { crypto } = globalThis as { crypto?: Crypto };
  return (crypto?.getRandomValues(new Uint8Array(1))[0] ?? Math.random() * 16) & 15;
}

export const systemRuntime: Runtime = {
  now: () => Date.now(),
  after(delayMs, work) {
    const timer = setTimeout(work, delayMs);
    return () => clearTimeout(timer);
  },
  random: () => Math.random(),
  uuid: () =>
    // The first bits of the 8 are the variant's, and stay.
    "00000000-0000-4000-8000-000000000000".replace(/[08]/g, (digit) =>
      (Number(digit) | (randomDigit() & (digit === "8" ? 3 : 15))).toString(16),
    ),
};

/** Adds jitter: returns half of `delayMs` to all of it, so that clients disconnected by a restart do not reconnect together. */
export const jittered = (runtime: Runtime, delayMs: number): number => (delayMs * (1 + runtime.random())) / 2;

/** Resolves after `delayMs`; rejects with the signal's reason when it is aborted. */
export function pause(runtime: Runtime, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancel = runtime.after(delayMs, () => {
      stopListening();
      resolve();
    });
    const stopListening = listen(signal, "abort", () => {
      cancel();
      reject(signal?.reason);
    });
  });
}
