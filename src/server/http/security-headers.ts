import { HSTS_SECONDS } from "./limits.ts";

/** The header of every answer: browsers must not guess another content type. [HT20] */
export const NOSNIFF = { "x-content-type-options": "nosniff" } as const;

/**
 * The headers of files, pages and redirects: the address, which may contain the token of a signed URL, is not passed on to other
 * sites. JSON answers have no links, and each header costs the fastest answers about 1 % of their time.
 */
export const SHOWN_HEADERS = { ...NOSNIFF, "referrer-policy": "no-referrer" } as const;

/**
 * The default for answers without a cache policy: most depend on the caller, and a browser would show them after the caller has
 * signed out. Files and pages have an ETag and are revalidated instead. [HT142]
 */
export const NO_STORE = { "cache-control": "no-store" } as const;

/** Returns the headers of an own page with one inline script: no foreign source, no other script, no framing. [HT20] */
export function pageHeaders(inlineScript: string): Record<string, string> {
  const hash = new Bun.CryptoHasher("sha256").update(inlineScript).digest("base64");
  const policy = [
    "default-src 'none'",
    `script-src 'self' 'sha256-${hash}'`,
    // Swagger UI sets styles on its elements, and loads icons from data: addresses.
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

/** Returns `Strict-Transport-Security` for so many seconds; true: a year; false or absent: no header. [HT302] */
export function hstsHeaders(hsts: boolean | number = false): Record<string, string> {
  if (hsts === false) return {};
  return { "strict-transport-security": `max-age=${hsts === true ? HSTS_SECONDS : hsts}` };
}
