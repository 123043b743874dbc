import { closestName } from "../kernel/closest-name.ts";
import type { ConfigProblem } from "./problems.ts";

/** Where the check stands, and where it writes what it finds. */
export interface Report {
  readonly path: string;
  readonly problems: ConfigProblem[];
  at(member: string | number): Report;
  /** Always false, so that a check can end with it. */
  say(message: string): false;
}

/** True when the value is as it should be; otherwise the report says all that is wrong. Never gets undefined. */
export type Check = (value: unknown, report: Report) => boolean;

const DESCRIBED_CHARACTERS_MAX = 40;

export function createReport(path = "", problems: ConfigProblem[] = []): Report {
  return {
    path,
    problems,
    at: (member) => createReport(path === "" ? String(member) : `${path}.${member}`, problems),
    say(message) {
      problems.push({ path, message });
      return false;
    },
  };
}

export type PlainObject = { readonly [member: string]: unknown };

export function isPlainObject(value: unknown): value is PlainObject {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** What somebody wrote, short enough for a message. */
export function describe(value: unknown): string {
  if (typeof value === "string") {
    const text = JSON.stringify(value);
    return text.length > DESCRIBED_CHARACTERS_MAX ? `${text.slice(0, DESCRIBED_CHARACTERS_MAX)}…"` : text;
  }
  if (typeof value === "function") return "a function";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object" && value !== null) return isPlainObject(value) ? "an object" : className(value);
  return String(value);
}

const className = (value: object): string => `an instance of ${value.constructor?.name ?? "a class"}`;

/** An object with these members and no others. */
export function members(checks: { readonly [member: string]: Check }, required: readonly string[] = []): Check {
  const known = Object.keys(checks);
  return (value, report) => {
    if (!isPlainObject(value)) return report.say(`must be an object, got ${describe(value)}`);
    let isRight = true;
    for (const [name, member] of Object.entries(value)) {
      if (member === undefined) continue;
      const check = Object.hasOwn(checks, name) ? checks[name] : undefined;
      if (check === undefined) isRight = report.at(name).say(unknownMember(name, known));
      else if (!check(member, report.at(name))) isRight = false;
    }
    for (const name of required) if (value[name] === undefined) isRight = report.at(name).say("is required");
    return isRight;
  };
}

function unknownMember(name: string, known: readonly string[]): string {
  if (known.length === 0) return "is not known here: nothing can be declared in it";
  const closest = closestName(name, known);
  return closest === "" ? `is not known here, only ${known.join(", ")}` : `is not known here${closest}`;
}

/**
 * An object whose members' names are the user's own. `nameProblem` says what is wrong with a name. Two names that differ
 * only in case are refused unless it is told that case counts.
 */
export function named(
  nameProblem: (name: string) => string | null,
  entry: Check,
  { isCaseIgnored = true }: { isCaseIgnored?: boolean } = {},
): Check {
  return (value, report) => {
    if (!isPlainObject(value)) return report.say(`must be an object, got ${describe(value)}`);
    let isRight = true;
    const seen = new Map<string, string>();
    for (const [name, member] of Object.entries(value)) {
      const at = report.at(name);
      const problem = nameProblem(name);
      const twin = isCaseIgnored ? seen.get(name.toLowerCase()) : undefined;
      seen.set(name.toLowerCase(), name);
      if (problem !== null) isRight = at.say(problem);
      if (twin !== undefined) isRight = at.say(`differs from ${twin} only in case, which SQLite and some disks ignore`);
      if (member === undefined) isRight = at.say("is undefined; leave it out instead");
      else if (!entry(member, at)) isRight = false;
    }
    return isRight;
  };
}

export function list(entry: Check, options: { isEmptyAllowed?: boolean } = {}): Check {
  return (value, report) => {
    if (!Array.isArray(value)) return report.say(`must be a list, got ${describe(value)}`);
    if (value.length === 0 && options.isEmptyAllowed !== true) return report.say("must not be empty");
    return value.map((item: unknown, index) => entry(item, report.at(index))).every(Boolean);
  };
}

export const boolean: Check = (value, report) =>
  typeof value === "boolean" || report.say(`must be true or false, got ${describe(value)}`);

export const func: Check = (value, report) =>
  typeof value === "function" || report.say(`must be a function, got ${describe(value)}`);

export const booleanOrFunction: Check = (value, report) =>
  typeof value === "boolean" ||
  typeof value === "function" ||
  report.say(`must be true, false or a function, got ${describe(value)}`);

export const text: Check = (value, report) => {
  if (typeof value !== "string") return report.say(`must be a string, got ${describe(value)}`);
  return value !== "" || report.say("must not be empty");
};

/** As `text`, for what must not appear in a message. */
export const secretText: Check = (value, report) => {
  if (typeof value !== "string") return report.say(`must be a string, got a value of type ${typeof value}`);
  return value !== "" || report.say("must not be empty");
};

/** A text for which `problem` gives null; otherwise what it says. */
export function textWith(problem: (value: string) => string | null): Check {
  return (value, report) => {
    if (typeof value !== "string" || value === "") return text(value, report);
    const message = problem(value);
    return message === null || report.say(message);
  };
}

export function oneOf(...choices: readonly (string | boolean)[]): Check {
  const wanted = choices.map(String).join(", ");
  return (value, report) => {
    if (choices.some((choice) => choice === value)) return true;
    const strings = choices.filter((choice) => typeof choice === "string");
    const closest = typeof value === "string" ? closestName(value, strings) : "";
    return report.say(`must be one of ${wanted}, got ${describe(value)}${closest}`);
  };
}

export function whole(bounds: { min: number; max?: number; unit?: string }): Check {
  const { min, max = Number.MAX_SAFE_INTEGER } = bounds;
  const unit = bounds.unit === undefined ? "" : ` of ${bounds.unit}`;
  const range = max === Number.MAX_SAFE_INTEGER ? `${min} or more` : `from ${min} to ${max}`;
  return (value, report) =>
    (Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max) ||
    report.say(`must be a whole number${unit}, ${range}, got ${describe(value)}`);
}

/** Long enough for anything that is meant, and added to the time it is a date still. */
const CENTURY_SECONDS = 100 * 365 * 24 * 60 * 60;

/** A length of time. Whole: it ends in columns, headers and tokens that take whole numbers only. */
export function duration(unit: "seconds" | "milliseconds", { min = 1 }: { min?: number } = {}): Check {
  return whole({ min, max: CENTURY_SECONDS * (unit === "seconds" ? 1 : 1_000), unit });
}

/** An address that begins with one of these schemes. */
export function url(...schemes: readonly string[]): Check {
  const wanted = schemes.map((scheme) => `${scheme}:`).join(" or ");
  return textWith((value) => {
    const parsed = URL.parse(value);
    const isRight = parsed !== null && schemes.some((scheme) => parsed.protocol === `${scheme}:`);
    return isRight ? null : `must be a URL that begins with ${wanted}, got ${describe(value)}`;
  });
}
