import type { ClientContext } from "./context.ts";
import { listen, together } from "./listeners.ts";
import { PlatformError } from "./transport/errors.ts";

export type EventProperties = { readonly [name: string]: string | number | boolean };

/** Events of the app. */
export interface Analytics {
  /**
   * Records an event, of the signed-in user if there is one. Events are sent together, some seconds later and as the page goes; an
   * event that the server refuses is a warning on the console.
   */
  track(name: string, properties?: EventProperties): void;
  /** Resolves when all events have been sent. Errors: `PlatformError`; the events wait for the next try. */
  flush(): Promise<void>;
}

/** Events are sent together, this long after the first of them. */
const FLUSH_AFTER_MS = 5_000;
/** What the server takes in one request. */
const EVENTS_AT_ONCE_MAX = 100;
/** Browsers send at most this much after a page has gone. */
const KEEPALIVE_MAX_BYTES = 64 * 1024;
/** Of one request, so that most are within it. */
const BODY_MAX_CHARACTERS = 50_000;
/** While the server cannot be reached; beyond it the oldest are dropped. */
const WAITING_MAX = 1_000;
/** An event that waited for longer has its time with it; others get the server's, as the clock of a device may be wrong. */
const RECENT_MS = 10_000;

interface Waiting {
  name: string;
  properties: EventProperties | undefined;
  at: number;
  /** Who was signed in. */
  userId: string | null;
}

/** Where the page goes away, or may go without notice, as on phones. */
function onHide(work: () => void): () => void {
  return together([
    listen(globalThis.document, "visibilitychange", () => {
      if (document.visibilityState === "hidden") work();
    }),
    listen(globalThis, "pagehide", work),
  ]);
}

export function createAnalytics(context: ClientContext): Analytics {
  const { transport, runtime } = context;
  let waiting: Waiting[] = [];
  let cancel: (() => void) | null = null;
  let sending: Promise<void> | null = null;

  const later = () => {
    cancel ??= runtime.after(FLUSH_AFTER_MS, () => {
      cancel = null;
      void flush().catch(() => {});
    });
  };
  /** The first events that fit into one request, all of one user. */
  const take = (): Waiting[] => {
    const userId = waiting[0]?.userId;
    let characters = 0;
    const count = waiting.findIndex((event, index) => {
      characters += JSON.stringify(event).length;
      return index === EVENTS_AT_ONCE_MAX || event.userId !== userId || (index > 0 && characters > BODY_MAX_CHARACTERS);
    });
    return waiting.splice(0, count === -1 ? waiting.length : count);
  };
  /** What can be recorded later waits again. Errors: no answer, or one that passes. */
  const send = async (events: readonly Waiting[]): Promise<void> => {
    // What JSON does not have is the server's to refuse, which names the event.
    const body = JSON.stringify({
      events: events.map(({ name, properties, at }) => {
        const isRecent = runtime.now() - at < RECENT_MS;
        return { name, properties, timestamp: isRecent ? undefined : at };
      }),
    });
    // Events of somebody who has signed out since are nobody's.
    const isTheirs = () => events[0]?.userId === transport.userId();
    const auth = isTheirs();
    try {
      await transport.request("POST", "/api/analytics/track", {
        body,
        headers: { "Content-Type": "application/json" },
        auth,
        // Goes on when the page has gone. Browsers refuse that for a larger body, which would be in the way of all others.
        fetch: (url, init) => fetch(url, { ...init, keepalive: new Blob([body]).size <= KEEPALIVE_MAX_BYTES }),
      });
    } catch (error) {
      later();
      if (error instanceof PlatformError && error.status >= 400 && error.status < 429 && auth === isTheirs()) {
        // The server would refuse them again: those at fault are named by their places.
        console.warn(`Events were not recorded: ${error.message}`, error.fields);
        const faulty = new Set(Object.keys(error.fields).map((field) => Number(field.split(".")[1])));
        const others = events.filter((_, index) => !faulty.has(index));
        if (others.length < events.length) waiting = [...others, ...waiting];
        return;
      }
      waiting = [...events, ...waiting].slice(-WAITING_MAX);
      throw error;
    }
  };
  const sendAll = async (): Promise<void> => {
    while (waiting.length > 0) await send(take());
  };
  const flush = (): Promise<void> => {
    sending ??= sendAll().finally(() => {
      sending = null;
    });
    return sending;
  };
  const stopListening = onHide(() => {
    // All at once: nothing can be awaited any more.
    while (waiting.length > 0) void send(take()).catch(() => {});
  });
  context.onClose(() => {
    stopListening();
    cancel?.();
    void flush().catch(() => {});
  });
  return {
    track(name, properties) {
      waiting.push({ name, properties, at: runtime.now(), userId: transport.userId() });
      if (waiting.length > WAITING_MAX) waiting.shift();
      later();
    },
    flush,
  };
}
