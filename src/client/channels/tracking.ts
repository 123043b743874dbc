import type { JsonObject } from "../../kernel/json/json.ts";
import type { ClientContext } from "../context.ts";
import { together } from "../listeners.ts";
import { PlatformError } from "../transport/errors.ts";
import { ask } from "./ask.ts";

/** What this client shows of itself on a presence channel. */
export interface Tracking {
  track(state: JsonObject): Promise<void>;
  untrack(): Promise<void>;
}

export function createTracking(context: ClientContext, channel: string): Tracking {
  /** null: nothing. */
  let tracked: JsonObject | null = null;
  /** It was sent once, so that each new connection is sent it again. */
  let isRepeated = false;
  let end: (() => void) | null = null;

  const stop = () => {
    tracked = null;
    isRepeated = false;
    end?.();
    end = null;
  };
  /** Keeps the connection. */
  const keep = async () => {
    const socket = await context.socket();
    if (tracked === null || end !== null) return;
    end = together([
      socket.hold(),
      socket.onConnected(() => {
        if (isRepeated && tracked !== null) socket.send({ type: "track", channel, state: tracked });
      }),
      context.transport.onAuth(stop),
    ]);
  };
  return {
    async track(state) {
      tracked = state;
      await keep();
      // Untracked meanwhile, which is sent first.
      if (tracked === null) return;
      try {
        const message = { type: "track", channel, state };
        await ask(context, message);
        isRepeated = tracked !== null;
      } catch (error) {
        // A lost connection comes back; a refusal stays one.
        const isLost = error instanceof PlatformError && error.status === 0;
        if (isLost) isRepeated = tracked !== null;
        else if (tracked === state) stop();
        throw error;
      }
    },
    async untrack() {
      if (tracked === null) return;
      stop();
      await ask(context, { type: "untrack", channel });
    },
  };
}
