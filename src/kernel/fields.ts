import { AppError, badRequest, type FieldCode, type FieldProblems, noProblems } from "./errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "./json.ts";

/** Unknown members that an answer names: a body has room for a million. */
const UNKNOWN_NAMED_MAX = 20;

/** In characters (code points), as people count them. */
interface TextBounds {
  minLength?: number;
  maxLength: number;
}

/**
 * Reads the members of a body, keeping every problem, so that one answer names them all. `prefix` stands before the
 * names in the problems (`users.3.`). Call `finish()` once everything has been asked for. Decisions 4 names the codes.
 */
export class Fields {
  readonly #body: JsonObject;
  readonly #prefix: string;
  readonly #asked = new Set<string>();
  readonly problems: FieldProblems;

  constructor(body: JsonObject, options: { prefix?: string; problems?: FieldProblems } = {}) {
    this.#body = body;
    this.#prefix = options.prefix ?? "";
    this.problems = options.problems ?? noProblems();
  }

  has(name: string): boolean {
    return Object.hasOwn(this.#body, name);
  }

  problem(name: string, code: FieldCode, message: string): undefined {
    this.problems[this.#prefix + name] ??= { code, message };
    return undefined;
  }

  /** The member as it is; undefined when absent. */
  value(name: string): JsonValue | undefined {
    this.#asked.add(name);
    return this.has(name) ? this.#body[name] : undefined;
  }

  /** A string, undefined when absent or at fault; null reads as absent. */
  text(name: string, bounds: TextBounds): string | undefined {
    const value = this.value(name);
    if (value === undefined || value === null) return undefined;
    if (typeof value !== "string") return this.problem(name, "invalid_type", `${name} must be a string`);
    const { minLength = 0, maxLength } = bounds;
    if (!isLonger(value, minLength - 1)) {
      return this.problem(name, "too_short", `${name} must have at least ${minLength} characters`);
    }
    if (isLonger(value, maxLength)) {
      return this.problem(name, "too_long", `${name} must have at most ${maxLength} characters`);
    }
    if (!value.isWellFormed()) return this.problem(name, "invalid_value", illFormed(name));
    return value;
  }

  requiredText(name: string, maxLength: number): string {
    const value = this.value(name);
    if (value === undefined || value === null || value === "") {
      this.problem(name, "required", `${name} is required`);
      return "";
    }
    return this.text(name, { maxLength }) ?? "";
  }

  /** A string, or null to clear; undefined when absent or at fault. */
  nullableText(name: string, bounds: TextBounds): string | null | undefined {
    return this.value(name) === null ? null : this.text(name, bounds);
  }

  flag(name: string): boolean | undefined {
    const value = this.value(name);
    if (value === undefined || typeof value === "boolean") return value;
    return this.problem(name, "invalid_type", `${name} must be true or false`);
  }

  object(name: string): JsonObject | undefined {
    const value = this.value(name);
    if (value === undefined || isJsonObject(value)) return value;
    return this.problem(name, "invalid_type", `${name} must be an object`);
  }

  /** Every member that has not been asked for is unknown; the first of them are named. */
  refuseUnknown(): void {
    let unknownCount = 0;
    for (const name in this.#body) {
      if (this.#asked.has(name)) continue;
      if (unknownCount++ === UNKNOWN_NAMED_MAX) return;
      this.problem(name, "unknown_field", `${name} is not a field of this request`);
    }
  }

  /** Errors: 400 with every problem found. */
  finish(): void {
    this.refuseUnknown();
    throwProblems(this.problems);
  }
}

/** What is said of a text that UTF-8 cannot hold. */
export const illFormed = (name: string): string => `${name} holds half of a surrogate pair`;

/** Whether `text` has more than `count` characters; counted only where the length does not tell. */
export function isLonger(text: string, count: number): boolean {
  if (text.length <= count) return false;
  if (text.length > 2 * count) return true;
  return Array.from(text).length > count;
}

/** Nothing when there are no problems. Errors: 400; a single problem's message is the whole error's. */
export function throwProblems(problems: FieldProblems): void {
  const messages = Object.values(problems);
  const [first] = messages;
  if (first === undefined) return;
  throw badRequest(messages.length === 1 ? first.message : `${messages.length} fields are not valid`, problems);
}

/** Errors: 413 when `value` takes more than `maxBytes` as JSON. */
export function requireJsonSize(name: string, value: JsonObject, maxBytes: number): void {
  const sizeBytes = Buffer.byteLength(JSON.stringify(value));
  if (sizeBytes <= maxBytes) return;
  const message = `${name} must be at most ${maxBytes} bytes of JSON, got ${sizeBytes}`;
  throw new AppError(413, message, { data: { [name]: { code: "too_large", message } } });
}
