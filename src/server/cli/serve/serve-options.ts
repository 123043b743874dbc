import { HOST_DEFAULT, PORT_DEFAULT, TLS_HOST_DEFAULT, TLS_PORT_DEFAULT } from "../../http/listening/listener.ts";
import { UsageError } from "../errors.ts";
import { parseLogForm } from "../logs.ts";
import { configOption, dataOption, parsePort } from "../options.ts";

/** The options of `start` and `dev`. */
export const serveOptions = {
  config: configOption,
  data: dataOption,
  host: {
    type: "string",
    environment: "PLATFORM_HOST",
    description: `The address to listen on; ${HOST_DEFAULT} by default, with server.tls ${TLS_HOST_DEFAULT}`,
    valueHint: "HOST",
  },
  port: {
    type: "string",
    environment: "PLATFORM_PORT",
    check: parsePort,
    description: `The port to listen on; ${PORT_DEFAULT} by default, with server.tls ${TLS_PORT_DEFAULT}; 0 picks a free one`,
    valueHint: "PORT",
  },
  log: {
    type: "string",
    environment: "PLATFORM_LOG",
    check: parseLogForm,
    description: "The form of the log: json or pretty; pretty by default on a terminal, otherwise json",
    valueHint: "FORM",
  },
} as const;

/** Further options of `start`. */
export const startOptions = {
  drill: {
    type: "boolean",
    description: "Serve a restored copy: change nothing outside its data directory, and send nothing",
    default: false,
  },
  "take-over": {
    type: "boolean",
    description:
      "Take over object stores and the place of backups from another data directory that no server uses any more",
    default: false,
  },
} as const;

const DRILL = "PLATFORM_DRILL";

/** Whether the server runs as a drill. For hooks it then sets PLATFORM_DRILL=1 in the environment. */
export function drillOf(option: boolean, environment: Record<string, string | undefined>): boolean {
  const value = environment[DRILL] ?? "";
  if (!["", "0", "false", "1", "true"].includes(value)) {
    throw new UsageError(`${DRILL} must be 1 or true, 0 or false, got "${value}"`);
  }
  const isDrill = option || value === "1" || value === "true";
  if (isDrill) environment[DRILL] = "1";
  return isDrill;
}
