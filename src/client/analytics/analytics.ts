import type { ClientContext } from "../context.ts";
import { listen, together } from "../listeners.ts";
import { PlatformError } from "../transport/errors.ts";
import {
  BODY_MAX_CHARACTERS,
  EVENTS_AT_ONCE_MAX,
  FLUSH_AFTER_MS,
  KEEPALIVE_MAX_BYTES,
  RECENT_MS,
  WAITING_MAX,
} from "./limits.ts";
import type { Analytics, EventProperties } from "./types.ts";

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
