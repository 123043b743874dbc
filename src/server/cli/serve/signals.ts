import { constants } from "node:os";

const SIGNALS = ["SIGTERM", "SIGINT"] as const;
/** The base of exit codes: shells add it to the number of the signal that ended a process. */
const EXIT_SIGNALLED = 128;
/** Variable by which `dev` gives the server a key for agents. */
export const MCP_KEY_VARIABLE = "PLATFORM_DEV_MCP_KEY";
export const STOP_MESSAGE = "stop";

/** Whether `platform dev` started this process. */
export const isOfDev = (): boolean => process.send !== undefined;

/** Returns the key that `platform dev` made for agents, and removes it where code of the config would find it; null without one. */
export function takeMcpKey(): string | null {
  const key = process.env[MCP_KEY_VARIABLE] ?? null;
  delete process.env[MCP_KEY_VARIABLE];
  return isOfDev() ? key : null;
}

/**
 * Resolves at the first SIGTERM or SIGINT; a second one ends the process immediately, with 128 plus its number. Also resolves at a
 * message of the parent (`platform dev`), and when the parent ends.
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
 * Ends the process at a signal, a message of the parent, or its end, while nothing is open that needs a stop; even when a config's
 * code never returns. The returned function undoes it.
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
