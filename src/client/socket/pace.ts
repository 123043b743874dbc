import type { Runtime } from "../runtime.ts";
import { MESSAGES_AT_ONCE, MESSAGES_PER_SECOND, WAITING_MESSAGES_MAX } from "./limits.ts";

const SECOND_PARTS = 10;

/** Sends texts in order, at a pace that the server accepts: a page that comes back subscribes to 200 channels at once. */
export interface Pace {
  send(text: string): void;
  stop(): void;
}

export function createPace(runtime: Runtime, sendNow: (text: string) => void): Pace {
  let waiting: string[] = [];
  let allowed = MESSAGES_AT_ONCE;
  let cancel: (() => void) | null = null;

  const refill = () => {
    cancel = null;
    allowed = Math.min(MESSAGES_AT_ONCE, allowed + MESSAGES_PER_SECOND / SECOND_PARTS);
    const now = waiting.slice(0, allowed);
    waiting = waiting.slice(now.length);
    allowed -= now.length;
    for (const text of now) sendNow(text);
    refillLater();
  };
  const refillLater = () => {
    if (allowed < MESSAGES_AT_ONCE) cancel ??= runtime.after(1000 / SECOND_PARTS, refill);
  };
  return {
    send(text) {
      if (waiting.length > 0 || allowed < 1) {
        waiting.push(text);
        if (waiting.length > WAITING_MESSAGES_MAX) waiting.shift();
      } else {
        allowed--;
        sendNow(text);
      }
      refillLater();
    },
    stop: () => cancel?.(),
  };
}
