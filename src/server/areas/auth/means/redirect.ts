import { badField } from "../../../../kernel/errors.ts";
import { LOOPBACK } from "../../../config/sections/auth-issuers.ts";
import type { AuthConfig } from "../../../config/types.ts";

/**
 * Returns an address if `auth.redirectUrls` allows it. A trailing `*` matches the rest of the path, never of the host:
 * `https://app.example.com*` is not `https://app.example.com.evil.example`. With `anyLoopbackPort`, a pattern on this machine
 * without a port fits any port, as apps that listen for the answer take whichever is free. null: not allowed. [AU22] [AU304]
 */
export function allowedRedirect(
  text: string,
  allowed: readonly string[],
  { anyLoopbackPort = false }: { anyLoopbackPort?: boolean } = {},
): URL | null {
  if (!URL.canParse(text)) return null;
  const url = new URL(text);
  // User information before the host serves only to deceive.
  if (url.username !== "" || url.password !== "") return null;
  return allowed.some((pattern) => matches(url, pattern, anyLoopbackPort)) ? url : null;
}

function matches(given: URL, pattern: string, anyLoopbackPort: boolean): boolean {
  const isPrefix = pattern.endsWith("*");
  const text = isPrefix ? pattern.slice(0, -1) : pattern;
  if (!URL.canParse(text)) return false;
  const wanted = new URL(text);
  const url = new URL(given);
  if (anyLoopbackPort && wanted.port === "" && wanted.protocol === "http:" && LOOPBACK.has(wanted.hostname))
    url.port = "";
  if (url.protocol !== wanted.protocol || url.host !== wanted.host) return false;
  return isPrefix ? url.href.startsWith(wanted.href) : url.href === wanted.href;
}

/** Returns the address that a mailed link leads to; null for the server's own. Errors: 400. */
export function redirectField(text: string | null | undefined, { redirectUrls = [] }: AuthConfig): URL | null {
  if (text === null || text === undefined) return null;
  const url = allowedRedirect(text, redirectUrls);
  if (url === null) throw badField("redirectUrl", "invalid_value", "redirectUrl is not one of auth.redirectUrls");
  return url;
}
