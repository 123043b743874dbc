import { UsageError } from "./usage-error.ts";

export const CONFIG_DEFAULT = "./platform.config.ts";
export const DATA_DEFAULT = "./data";
const PORT_MAX = 65_535;

export const configOption = {
  type: "string",
  description: "The config file",
  default: CONFIG_DEFAULT,
  valueHint: "FILE",
} as const;

export const dataOption = {
  type: "string",
  description: "The directory that everything is kept in",
  default: DATA_DEFAULT,
  valueHint: "DIR",
} as const;

export function parsePort(text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= PORT_MAX) return port;
  throw new UsageError(`--port must be a whole number from 0 to ${PORT_MAX}, got "${text}"`);
}
