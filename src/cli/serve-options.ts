import { HOST_DEFAULT, PORT_DEFAULT } from "../http/listener.ts";
import { configOption, dataOption } from "./options.ts";
import { UsageError } from "./usage-error.ts";

/** What `start` and `dev` take. */
export const serveOptions = {
  config: configOption,
  data: dataOption,
  host: { type: "string", description: "The address to listen on", default: HOST_DEFAULT, valueHint: "HOST" },
  port: {
    type: "string",
    description: "The port to listen on; 0 picks a free one",
    default: String(PORT_DEFAULT),
    valueHint: "PORT",
  },
} as const;

/** What `start` takes beside those. */
export const startOptions = {
  drill: {
    type: "boolean",
    description: "Serves a restored copy: changes nothing outside its data directory and sends nothing",
    default: false,
  },
  "take-over": {
    type: "boolean",
    description: "Takes prefixes of object stores over from another data directory, which no server uses any more",
    default: false,
  },
} as const;

const DRILL = "PLATFORM_DRILL";

/** Whether the server is to run as a drill. Hooks find PLATFORM_DRILL=1 in their environment then. */
export function drillOf(option: boolean, environment: Record<string, string | undefined>): boolean {
  const value = environment[DRILL] ?? "";
  if (!["", "0", "false", "1", "true"].includes(value)) {
    throw new UsageError(`${DRILL} must be 1 or true, 0 or false, got "${value}"`);
  }
  const isDrill = option || value === "1" || value === "true";
  if (isDrill) environment[DRILL] = "1";
  return isDrill;
}
