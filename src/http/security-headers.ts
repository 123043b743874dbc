/** With every answer: a body is what its type says, and nothing else. */
export const NOSNIFF = { "x-content-type-options": "nosniff" } as const;

/**
 * With files, pages and redirects: no other site learns the address, which may hold the token of a signed URL. JSON leads
 * nowhere, and each header costs the quickest answers some hundredths of their time.
 */
export const SHOWN_HEADERS = { ...NOSNIFF, "referrer-policy": "no-referrer" } as const;

/** For a page of our own with one inline script: nothing from elsewhere, no other script, and in nobody's frame. */
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
