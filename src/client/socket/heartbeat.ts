import type { Runtime } from "../runtime.ts";
import { BEAT_MS, PING_EVERY_BEATS, PONG_TIMEOUT_MS, PROBE_TIMEOUT_MS } from "./limits.ts";

/** Finds out that a connection is lost, although nothing has closed it. */
export interface Heartbeat {
  /** Something was received. */
  heard(): void;
  /** Asks at once, and waits for less time. */
  probe(): void;
  stop(): void;
}

/** Counts beats instead of reading the clock, which may be changed while the connection is open. */
export function startHeartbeat(
  runtime: Runtime,
  { ping, onBeat, onLost }: { ping: () => void; onBeat: () => void; onLost: () => void },
): Heartbeat {
  let hasHeard = true;
  let beatsSincePing = 0;
  let isAsking = false;
  let cancel: () => void = () => {};

  const ask = (timeoutMs: number) => {
    isAsking = true;
    hasHeard = false;
    beatsSincePing = 0;
    ping();
    cancel = runtime.after(timeoutMs, onLost);
  };
  const beat = () => {
    onBeat();
    if (!hasHeard || ++beatsSincePing >= PING_EVERY_BEATS) return ask(PONG_TIMEOUT_MS);
    hasHeard = false;
    cancel = runtime.after(BEAT_MS, beat);
  };
  cancel = runtime.after(BEAT_MS, beat);
  return {
    heard() {
      hasHeard = true;
      if (!isAsking) return;
      isAsking = false;
      cancel();
      cancel = runtime.after(BEAT_MS, beat);
    },
    probe() {
      cancel();
      ask(PROBE_TIMEOUT_MS);
    },
    stop: () => cancel(),
  };
}
