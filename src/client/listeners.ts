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

/** Listens to an event of the environment, some of which have no such target. The function ends that. */
export function listen<Given extends Event>(
  target: unknown,
  type: string,
  listener: (event: Given) => void,
): () => void {
  // Each event has the type that its listener takes.
  const events = target as Partial<EventTarget> | null | undefined;
  events?.addEventListener?.(type, listener as EventListener);
  return () => events?.removeEventListener?.(type, listener as EventListener);
}

/** Ends all of them. */
export const together =
  (ends: readonly (() => void)[]): (() => void) =>
  () => {
    for (const end of ends) end();
  };

/** Calls back when the browser says that the network is there again, that the page is seen again, or that the network is gone. */
export function onWake({ isBack, isLost }: { isBack: () => void; isLost: () => void }): () => void {
  return together([
    listen(globalThis, "online", isBack),
    listen(globalThis, "offline", isLost),
    listen(globalThis.document, "visibilitychange", () => {
      if (document.visibilityState === "visible") isBack();
    }),
  ]);
}
