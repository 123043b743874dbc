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

/** 16 bytes as a UUID of version 4. */
function asUuid(bytes: Uint8Array): string {
  const hex = [...bytes].map((byte, index) => {
    const value = index === 6 ? (byte & 15) | 64 : index === 8 ? (byte & 63) | 128 : byte;
    return value.toString(16).padStart(2, "0");
  });
  return hex.join("").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

export const systemRuntime: Runtime = {
  now: () => Date.now(),
  after(delayMs, work) {
    const timer = setTimeout(work, delayMs);
    return () => clearTimeout(timer);
  },
  random: () => Math.random(),
  // `crypto.randomUUID` is missing on insecure origins, and React Native may have no `crypto` at all.
  uuid() {
    const bytes = new Uint8Array(16);
    const { crypto } = globalThis as { crypto?: Crypto };
    if (crypto === undefined) return asUuid(bytes.map(() => Math.random() * 256));
    return asUuid(crypto.getRandomValues(bytes));
  },
};

/** From half of `delayMs` to all of it, by chance, so that clients which a restart has cut off do not come back together. */
export const jittered = (runtime: Runtime, delayMs: number): number => (delayMs * (1 + runtime.random())) / 2;

/** Resolves after `delayMs`; rejects with the signal's reason when it is aborted. */
export function pause(runtime: Runtime, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      cancel();
      reject(signal?.reason);
    };
    const cancel = runtime.after(delayMs, () => {
      signal?.removeEventListener("abort", abort);
      resolve();
    });
    signal?.addEventListener("abort", abort, { once: true });
  });
}
