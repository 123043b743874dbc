import { SHOWN_LENGTH_MAX } from "../limits.ts";
import type { ConfigProblem } from "../problems.ts";

/** The path under validation, and the problems found so far. */
export interface Report {
  readonly path: string;
  /** The last part of the path. */
  readonly member: string;
  readonly problems: ConfigProblem[];
  at(member: string | number): Report;
  /** Adds a problem at this path. */
  say(message: string): void;
}

export function createReport(path = "", member = "", problems: ConfigProblem[] = []): Report {
  return {
    path,
    member,
    problems,
    at: (name) => createReport(path === "" ? String(name) : `${path}.${name}`, String(name), problems),
    say: (message) => void problems.push({ path, message }),
  };
}

export type PlainObject = { readonly [member: string]: unknown };

export function isPlainObject(value: unknown): value is PlainObject {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Formats a value of a config, short enough for a message. */
export function describe(value: unknown): string {
  if (typeof value === "string") {
    const text = JSON.stringify(value);
    return text.length > SHOWN_LENGTH_MAX ? `${text.slice(0, SHOWN_LENGTH_MAX)}…"` : text;
  }
  if (typeof value === "function") return "a function";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object" && value !== null) return isPlainObject(value) ? "an object" : className(value);
  return String(value);
}

const className = (value: object): string => `an instance of ${value.constructor?.name ?? "a class"}`;
