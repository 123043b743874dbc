import { HSTS_SECONDS } from "./limits.ts";

/** Sent with every answer: browsers must not guess another content type. [HT20] */
export const NOSNIFF = { "x-content-type-options": "nosniff" } as const;

/**
 * Sent with files, pages and redirects: the address, which may contain the token of a signed URL, is not passed on to other
 * sites. JSON answers have no links, and each header costs the fastest answers about 1 % of their time.
 */
export const SHOWN_HEADERS = { ...NOSNIFF, "referrer-policy": "no-referrer" } as const;

/**
 * For answers that say nothing else: most depend on who asks, and a browser would show them after the caller has signed out. Files and
 * pages have an ETag and are looked at again instead. [HT142]
 */
export const NO_STORE = { "cache-control": "no-store" } as const;

/** For a page of ours with one inline script: no foreign source, no other script, no framing. [HT20] */
export function pageHeaders(inlineScript: string): Record<string, string> {
  const hash = new Bun.CryptoHasher("sha256").update(inlineScript).digest("base64");
  const policy = [
    "default-src 'none'",
    `script-src 'self' 'sha256-${hash}'`,
    // Swagger UI sets styles on its elements, and draws icons from data: addresses.
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  return {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": policy.join("; "),
    "x-frame-options": "DENY",
  };
}

/** `Strict-Transport-Security` for so many seconds; true: a year; false or none: no header. [HT302] */
export function hstsHeaders(hsts: boolean | number = false): Record<string, string> {
  if (hsts === false) return {};
  return { "strict-transport-security": `max-age=${hsts === true ? HSTS_SECONDS : hsts}` };
}
