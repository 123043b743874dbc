import type { ArgsDef } from "citty";
import { PORT_MAX } from "../config/limits.ts";
import { UsageError } from "./errors.ts";

export const CONFIG_DEFAULT = "./platform.config.ts";
export const DATA_DEFAULT = "./data";

/** The member of an option that names the variable of the environment which replaces it. The command line beats it. */
const ENVIRONMENT = "environment";

export const configOption = {
  type: "string",
  [ENVIRONMENT]: "PLATFORM_CONFIG",
  description: "The config file",
  default: CONFIG_DEFAULT,
  valueHint: "FILE",
} as const;

export const dataOption = {
  type: "string",
  [ENVIRONMENT]: "PLATFORM_DATA",
  description: "The directory with all data",
  default: DATA_DEFAULT,
  valueHint: "DIR",
} as const;

/** Of commands that ask a running server, or open the data directory. */
export const serverOptions = {
  url: { type: "string", description: "A running server; by default the data directory is opened", valueHint: "URL" },
  key: { type: "string", description: "The service key for --url; PLATFORM_SERVICE_KEY by default", valueHint: "KEY" },
} as const;

export const isHttpUrl = (text: string): boolean => /^https?:$/.test(URL.parse(text)?.protocol ?? "");

/** The member of an option that checks a value: a mistake in a variable is reported by the name of the variable. */
const CHECK = "check";
/** `name`: what the value was given with. Errors: UsageError. */
type Check = (text: string, name: string) => unknown;

/** undefined for undefined. Errors: UsageError. */
export function parsePort(text: string | undefined, name = "--port"): number | undefined {
  if (text === undefined) return undefined;
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= PORT_MAX) return port;
  throw new UsageError(`${name} must be a whole number from 0 to ${PORT_MAX}, got "${text}"`);
}

/** Arguments for the options that are not given, and whose variable is set. An empty variable counts as unset. Errors: UsageError. */
export function environmentArguments(
  declared: ArgsDef,
  given: Readonly<Record<string, unknown>>,
  environment: Readonly<Record<string, string | undefined>>,
): string[] {
  return Object.entries(declared).flatMap(([name, option]) => {
    const variable = ENVIRONMENT in option ? String(option[ENVIRONMENT]) : "";
    const value = environment[variable] ?? "";
    if (given[name] !== undefined || value === "") return [];
    // Options are plain objects of this program, whose checks have this type.
    if (CHECK in option) (option[CHECK] as Check)(value, variable);
    return [`--${name}=${value}`];
  });
}
