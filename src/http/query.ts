import { badField } from "../kernel/errors.ts";

const EMPTY = new URLSearchParams();

/** The query of a request's URL. Unknown parameters are nobody's business; of a repeated one the first counts. */
export function queryOf(request: Request): URLSearchParams {
  const start = request.url.indexOf("?");
  return start < 0 ? EMPTY : new URLSearchParams(request.url.slice(start + 1));
}

/** A whole number within its bounds, or `fallback` when absent. Errors: 400 naming the parameter. */
export function wholeNumber(
  query: URLSearchParams,
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
export function requiredText(query: URLSearchParams, name: string): string {
  const text = query.get(name);
  if (text === null || text === "") throw badField(name, "required", `${name} is required`);
  return text;
}
