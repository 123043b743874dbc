import { badRequest } from "../../../../kernel/errors.ts";
import { isTextWithinDepth } from "../../../../kernel/json/json.ts";
import { JSON_DEPTH_MAX } from "../../../../kernel/limits.ts";
import { COOKIES_MAX } from "../limits.ts";
import { isJsonLike, jsonOf } from "../values/text.ts";

/**
 * Decodes the rest of a path, which Elysia's router, unlike named parameters, leaves encoded. Errors: 400 for a parameter that
 * cannot be decoded, which the router returns as null contrary to its types.
 */
export function decodeParams(params: Record<string, string | null> | undefined): void {
  for (const name in params) {
    const value = params[name];
    if (value === null || value === undefined) throw notEncoded();
    if (name === "*" && value.includes("%")) params[name] = decoded(value);
  }
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    throw notEncoded();
  }
}

const notEncoded = () => badRequest("The path is not valid percent-encoding");

/**
 * Checks the cookies: Elysia makes several objects of each, and parses those that look like JSON. Errors: 400 for too many, or too
 * deeply nested ones.
 */
export function checkCookies(headers: Headers): void {
  const text = headers.get("cookie");
  if (text === null) return;
  const cookies = text.split(";", COOKIES_MAX + 1);
  if (cookies.length > COOKIES_MAX) throw badRequest(`A request may have at most ${COOKIES_MAX} cookies`);
  for (const cookie of cookies) {
    const value = unescaped(cookie.slice(cookie.indexOf("=") + 1).trim());
    if (!isTextWithinDepth(value)) throw badRequest(`A cookie nests deeper than ${JSON_DEPTH_MAX} levels`);
    if (isJsonLike(value) && isJson(value) && jsonOf(value) === undefined) {
      throw badRequest("A cookie holds JSON that no body may hold");
    }
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function unescaped(value: string): string {
  if (!value.includes("%")) return value;
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
