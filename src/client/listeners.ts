/**
 * Functions that are called together. The same one may be added twice; one that another one has removed is not called. What one
 * throws is not caught by its caller, and keeps neither the others nor what told them from going on.
 */
export interface Listeners<Given extends unknown[]> {
  readonly size: number;
  /** The function ends it; calling it again does nothing. Gives whether it had not ended before. */
  add(listener: (...given: Given) => void): () => boolean;
  tell(...given: Given): void;
}

export function createListeners<Given extends unknown[] = []>(): Listeners<Given> {
  const listeners = new Set<(...given: Given) => void>();
  return {
    get size() {
      return listeners.size;
    },
    add(listener) {
      const own = (...given: Given) => listener(...given);
      listeners.add(own);
      return () => listeners.delete(own);
    },
    tell(...given) {
      for (const listener of [...listeners]) {
        try {
          if (listeners.has(listener)) listener(...given);
        } catch (error) {
          queueMicrotask(() => {
            throw error;
          });
        }
      }
    },
  };
}
