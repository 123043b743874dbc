import { constants } from "node:os";

const SIGNALS = ["SIGTERM", "SIGINT"] as const;
/** What shells add to a signal's number to say that it ended a process. */
const EXIT_SIGNALLED = 128;
export const STOP_MESSAGE = "stop";

/**
 * Resolves at the first SIGTERM or SIGINT; a second one ends the process at once, with 128 and its number. A parent that
 * started this process with a channel (`platform dev`) asks by message, and by going away.
 */
export function stopSignal(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let isStopping = false;
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      if (isStopping) process.exit(EXIT_SIGNALLED + constants.signals[signal]);
      isStopping = true;
      resolve();
    });
  }
  if (process.send !== undefined) {
    process.on("message", (message) => {
      if (message === STOP_MESSAGE) resolve();
    });
    process.on("disconnect", resolve);
  }
  return promise;
}

/**
 * While nothing is open yet there is nothing to stop: signals end the process by themselves, also one that a config keeps
 * busy for ever, and a parent with a channel does so from here on. The function returned undoes it.
 */
export function endOnRequest(): () => void {
  if (process.send === undefined) return () => {};
  const end = (): void => process.exit(EXIT_SIGNALLED + constants.signals.SIGTERM);
  const onMessage = (message: unknown): void => {
    if (message === STOP_MESSAGE) end();
  };
  process.on("message", onMessage);
  process.on("disconnect", end);
  return () => {
    process.off("message", onMessage);
    process.off("disconnect", end);
  };
}
