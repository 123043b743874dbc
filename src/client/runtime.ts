import { listen } from "./listeners.ts";

/** Time and chance, which tests replace. Everything else of the client takes them from here. */
export interface Runtime {
  /** Milliseconds since the Unix epoch by this machine's clock, which may be wrong. */
  now(): number;
  /** Runs `work` once after `delayMs`. The returned function cancels it. */
  after(delayMs: number, work: () => void): () => void;
  /** 0 to less than 1. */
  random(): number;
  /** A random UUID. */
  uuid(): string;
}

/** 0 to 15. `crypto.randomUUID` is missing on insecure origins, and React Native may have no `crypto` at all. */
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
    "xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx".replace(/[xy]/g, (place) =>
      // The first bits of `y` are those of the variant.
      (place === "x" ? randomDigit() : (randomDigit() & 3) | 8).toString(16),
    ),
};

/** From half of `delayMs` to all of it, by chance, so that clients which a restart has cut off do not come back together. */
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
