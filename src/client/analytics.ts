import type { ClientContext } from "./context.ts";
import { listen, together } from "./listeners.ts";
import { PlatformError } from "./transport/errors.ts";

export type EventProperties = { readonly [name: string]: string | number | boolean };

/** Analytics events of the app. */
export interface Analytics {
  /**
   * Records an event of the signed-in user, if any. Events are sent in batches, some seconds later and when the page is left. An
   * event that the server refuses is logged as a warning on the console.
   */
  track(name: string, properties?: EventProperties): void;
  /** Sends all waiting events. Errors: `PlatformError`; the events wait for the next attempt. */
  flush(): Promise<void>;
}

/** Event that waits to be sent. */
export interface Tracked {
  readonly name: string;
  readonly properties: EventProperties | undefined;
  readonly at: number;
  /** Id of the user signed in at `track`; null without one. */
  readonly userId: string | null;
}

/** Delay from the first event of a batch to its sending. */
const FLUSH_AFTER_MS = 5_000;
/** Number of events that the server accepts in one request. */
const EVENTS_AT_ONCE_MAX = 100;
/** Browsers limit the bodies of `keepalive` requests to this size. */
const KEEPALIVE_MAX_BYTES = 64 * 1024;
/** Body limit of one request, so that most fit into `keepalive`. */
const BODY_MAX_CHARACTERS = 50_000;
/** Events older than this are sent with their time. Newer ones get the server's, as the clock of a device may be wrong. */
const RECENT_MS = 10_000;
/** Bound of the queue while the server cannot be reached; the oldest events are dropped. */
const WAITING_MAX = 1_000;

/** Sends the events that `track` queues in `waiting`, in batches, with retries while the server cannot be reached. */
export function createSending({ transport, runtime, onClose }: ClientContext, waiting: Tracked[]) {
  let cancel: (() => void) | null = null;
  let sending: Promise<void> | null = null;
  /** Number of times the page was left. A browser may keep the page and show it again. */
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
  /** Sends one batch, and requeues events that can be recorded later. Errors: no response, or a temporary failure. */
  const send = async (events: readonly Tracked[]): Promise<void> => {
    const userId = events[0]?.userId ?? null;
    const sentAs = transport.userId();
    const before = departures;
    try {
      const sent = events.map(({ name, properties, at }) => {
        const timestamp = runtime.now() - at < RECENT_MS ? undefined : at;
        return { name, properties, timestamp };
      });
      // Values without a JSON form are left for the server to refuse, as it names the event.
      const body = new Blob([JSON.stringify({ events: sent })], { type: "application/json" });
      await transport.request("POST", "/api/analytics/track", {
        body,
        // Events of a user who has since signed out are sent anonymously.
        auth: userId === sentAs,
        // Browsers reject larger `keepalive` bodies, which would block all later events.
        keepalive: body.size <= KEEPALIVE_MAX_BYTES,
      });
    } catch (error) {
      const status = error instanceof PlatformError ? error.status : 0;
      // The browser completes requests in flight when the page is left, without telling the page. Sending again would count
      // events twice.
      if (status === 0 && before !== departures) return;
      later();
      if (
        error instanceof PlatformError &&
        status >= 400 &&
        status < 429 &&
        (userId === sentAs) === (userId === transport.userId())
      ) {
        // The server would refuse them again. The fields name the invalid events by index.
        console.warn(`Events not recorded: ${error.message}`, error.fields);
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
  /** Sends all batches at once: a page being left cannot await anything. */
  const sendNow = () => {
    while (waiting.length > 0) void send(take()).catch(() => {});
  };
  const stopListening = together([
    // Phones may discard a page without further events.
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
