import { badField } from "../kernel/errors.ts";

/** The query of a request. Taken apart when the first parameter is asked for: many requests have none. */
export class Query {
  /** As it was sent, without the question mark: equal texts mean equal queries. */
  readonly text: string;
  #parameters: URLSearchParams | null = null;

  constructor(text: string) {
    this.text = text;
  }

  /** null when absent; of a repeated parameter the first counts. Unknown parameters are nobody's business. */
  get(name: string): string | null {
    if (this.text === "") return null;
    this.#parameters ??= new URLSearchParams(this.text);
    return this.#parameters.get(name);
  }
}

const EMPTY = new Query("");

export function queryOf(request: Request): Query {
  const start = request.url.indexOf("?");
  if (start < 0) return EMPTY;
  const end = request.url.indexOf("#", start);
  return new Query(request.url.slice(start + 1, end < 0 ? undefined : end));
}

/** A whole number within its bounds, or `fallback` when absent. Errors: 400 naming the parameter. */
export function wholeNumber(
  query: Query,
  name: string,
  bounds: { min: number; max?: number; fallback: number },
): number {
  const text = query.get(name);
  if (text === null) return bounds.fallback;
  const value = Number(text);
  if (!/^-?\d{1,15}$/.test(text)) {
    throw badField(name, "invalid_type", `${name} must be a whole number, got "${text}"`);
  }
  if (value < bounds.min) throw badField(name, "too_small", `${name} must be at least ${bounds.min}, got ${value}`);
  if (bounds.max !== undefined && value > bounds.max) {
    throw badField(name, "too_large", `${name} must be at most ${bounds.max}, got ${value}`);
  }
  return value;
}

/** A parameter that has to be there. Errors: 400 `required`. */
export function requiredText(query: Query, name: string): string {
  const text = query.get(name);
  if (text === null || text === "") throw badField(name, "required", `${name} is required`);
  return text;
}
