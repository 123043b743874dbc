import { PORT_MAX } from "../config/limits.ts";
import { UsageError } from "./errors.ts";

export const CONFIG_DEFAULT = "./platform.config.ts";
export const DATA_DEFAULT = "./data";

export const configOption = {
  type: "string",
  description: "The config file",
  default: CONFIG_DEFAULT,
  valueHint: "FILE",
} as const;

export const dataOption = {
  type: "string",
  description: "The directory with all data",
  default: DATA_DEFAULT,
  valueHint: "DIR",
} as const;

export function parsePort(text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= PORT_MAX) return port;
  throw new UsageError(`--port must be a whole number from 0 to ${PORT_MAX}, got "${text}"`);
}
