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

/** An event that waits to be sent. */
export interface Tracked {
  readonly name: string;
  readonly properties: EventProperties | undefined;
  readonly at: number;
  /** The user who was signed in at `track`. */
  readonly userId: string | null;
}

/** Events are sent together, this long after the first of them. */
const FLUSH_AFTER_MS = 5_000;
/** What the server takes in one request. */
const EVENTS_AT_ONCE_MAX = 100;
/** Browsers send at most this much after a page has gone. */
const KEEPALIVE_MAX_BYTES = 64 * 1024;
/** Of one request, so that most are within it. */
const BODY_MAX_CHARACTERS = 50_000;
/** An event that waited for longer has its time with it; others get the server's, as the clock of a device may be wrong. */
const RECENT_MS = 10_000;
/** While the server cannot be reached; beyond it the oldest are dropped. */
const WAITING_MAX = 1_000;

/** Sends the events that `track` collects in `waiting`, together, and again where the server could not be reached. */
export function createSending({ transport, runtime, onClose }: ClientContext, waiting: Tracked[]) {
  let cancel: (() => void) | null = null;
  let sending: Promise<void> | null = null;
  /** How often the page was left: a browser may keep it, and show it again. */
  let departures = 0;

  const later = () => {
    if (waiting.length > WAITING_MAX) waiting.splice(0, waiting.length - WAITING_MAX);
    cancel ??= runtime.after(FLUSH_AFTER_MS, () => {
      cancel = null;
      void flush().catch(() => {});
    });
  };
  /** Removes the first events that fit into one request, all of one user. */
  const take = (): Tracked[] => {
    const userId = waiting[0]?.userId;
    let characters = 0;
    const count = waiting.findIndex((event, index) => {
      characters += JSON.stringify(event).length;
      return index === EVENTS_AT_ONCE_MAX || event.userId !== userId || (index > 0 && characters > BODY_MAX_CHARACTERS);
    });
    return waiting.splice(0, count === -1 ? waiting.length : count);
  };
  /** Events that can be recorded later wait again. Errors: no answer, or one that passes. */
  const send = async (events: readonly Tracked[]): Promise<void> => {
    const userId = events[0]?.userId ?? null;
    const sentAs = transport.userId();
    const before = departures;
    try {
      const sent = events.map(({ name, properties, at }) => {
        const timestamp = runtime.now() - at < RECENT_MS ? undefined : at;
        return { name, properties, timestamp };
      });
      // What JSON does not have is the server's to refuse, which names the event.
      const body = new Blob([JSON.stringify({ events: sent })], { type: "application/json" });
      await transport.request("POST", "/api/analytics/track", {
        body,
        // Events of somebody who has signed out since are nobody's.
        auth: userId === sentAs,
        // Browsers refuse it for a larger body, which would be in the way of all others.
        keepalive: body.size <= KEEPALIVE_MAX_BYTES,
      });
    } catch (error) {
      const status = error instanceof PlatformError ? error.status : 0;
      // The browser goes on sending what was under way when the page was left, and does not tell the page: sent again, it would count twice.
      if (status === 0 && before !== departures) return;
      later();
      if (
        error instanceof PlatformError &&
        status >= 400 &&
        status < 429 &&
        (userId === sentAs) === (userId === transport.userId())
      ) {
        // The server would refuse them again: those at fault are named by their places.
        console.warn(`Events were not recorded: ${error.message}`, error.fields);
        const faulty = new Set(Object.keys(error.fields).map((field) => Number(field.split(".")[1])));
        const others = events.filter((_, index) => !faulty.has(index));
        if (others.length < events.length) waiting.unshift(...others);
        return;
      }
      waiting.unshift(...events);
      throw error;
    }
  };
  const flush = (): Promise<void> => {
    const sendAll = async () => {
      while (waiting.length > 0) await send(take());
    };
    sending ??= sendAll().finally(() => {
      sending = null;
    });
    return sending;
  };
  /** All at once: a page that goes away awaits nothing. */
  const sendNow = () => {
    while (waiting.length > 0) void send(take()).catch(() => {});
  };
  const stopListening = together([
    // A page may go without further notice, as on phones.
    listen(globalThis.document, "visibilitychange", () => {
      if (document.visibilityState === "hidden") sendNow();
    }),
    listen(globalThis, "pagehide", () => {
      departures++;
    }),
  ]);
  onClose(() => {
    stopListening();
    cancel?.();
    void flush().catch(() => {});
  });
  return { later, flush };
}
