/**
 * Set of functions that are called together. The same one may be added twice; one removed during a call is not called. Exceptions
 * are isolated: they affect neither other listeners nor the caller.
 */
export interface Listeners<Given extends unknown[]> {
  readonly size: number;
  /** Adds a listener. Returns a function that removes it, and that returns whether it was still there. */
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

/** Listens to an event of the environment, whose target may be missing. Returns a function that unsubscribes. */
export function listen<Given extends Event>(
  target: unknown,
  type: string,
  listener: (event: Given) => void,
): () => void {
  // The event type is the listener's.
  const events = target as Partial<EventTarget> | null | undefined;
  events?.addEventListener?.(type, listener as EventListener);
  return () => events?.removeEventListener?.(type, listener as EventListener);
}

/** Combines functions into one that calls all of them. */
export const together =
  (ends: readonly (() => void)[]): (() => void) =>
  () => {
    for (const end of ends) end();
  };

/** Calls back when the browser reports that the network is back, that the page is visible again, or that the network is lost. */
export function onWake({ isBack, isLost }: { isBack: () => void; isLost: () => void }): () => void {
  return together([
    listen(globalThis, "online", isBack),
    listen(globalThis, "offline", isLost),
    listen(globalThis.document, "visibilitychange", () => {
      if (document.visibilityState === "visible") isBack();
    }),
  ]);
}
