import { InvalidArgumentError, Option } from "@commander-js/extra-typings";
import { PORT_MAX } from "../../config/limits.ts";
import { HOST_DEFAULT, PORT_DEFAULT, TLS_HOST_DEFAULT, TLS_PORT_DEFAULT } from "../../http/listening/listener.ts";
import { UsageError } from "../errors.ts";
import { LOG_FORMS } from "../logs.ts";
import { option } from "../options.ts";

// The options that `start` and `dev` share.

export const hostOption = option(
  "--host <HOST>",
  `The address to listen on; ${HOST_DEFAULT} by default, with server.tls ${TLS_HOST_DEFAULT}`,
).env("PLATFORM_HOST");

export const portOption = new Option(
  "--port <PORT>",
  `The port to listen on; ${PORT_DEFAULT} by default, with server.tls ${TLS_PORT_DEFAULT}; 0 picks a free one`,
)
  .env("PLATFORM_PORT")
  .argParser(parsePort);

export const logOption = new Option("--log <FORM>", "The form of the log; pretty by default on a terminal, else json")
  .env("PLATFORM_LOG")
  .choices(LOG_FORMS);

function parsePort(text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= PORT_MAX) return port;
  throw new InvalidArgumentError(`It must be a whole number from 0 to ${PORT_MAX}.`);
}

const DRILL = "PLATFORM_DRILL";

/** Whether the server runs as a drill. It then sets PLATFORM_DRILL=1 in the environment, for hooks. */
export function drillOf(isGiven: boolean, environment: Record<string, string | undefined>): boolean {
  const value = environment[DRILL] ?? "";
  if (!["", "0", "false", "1", "true"].includes(value)) {
    throw new UsageError(`${DRILL} must be 1 or true, 0 or false, got "${value}"`);
  }
  const isDrill = isGiven || value === "1" || value === "true";
  if (isDrill) environment[DRILL] = "1";
  return isDrill;
}
