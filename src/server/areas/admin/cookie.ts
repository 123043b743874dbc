import { COOKIES_LENGTH_MAX, SESSION_TTL_MS } from "./limits.ts";

/** The cookie of an administrator's session. Cookies do not tell ports apart, so its name tells servers apart. */
export interface SessionCookie {
  /** The tokens in these headers. More than one: whoever serves a page on another port or subdomain can add cookies. */
  read(headers: Headers): string[];
  /** The `Set-Cookie` that keeps a token. */
  set(token: string, options: { isSecure: boolean }): string;
  /** The `Set-Cookie` headers that remove it. */
  remove(): string[];
}

/**
 * `isHttps`: whether browsers reach the server by https alone. By https the name begins with `__Host-`, which neither another
 * subdomain nor a page without https can set.
 */
export function createSessionCookie(secret: string, { isHttps }: { isHttps: () => boolean }): SessionCookie {
  const hash = new Bun.CryptoHasher("sha256").update(`admin cookie ${secret}`).digest("hex");
  const plain = `platform_admin_${hash.slice(0, 8)}`;
  const host = `__Host-${plain}`;
  // Lax would send it with a link from another site.
  const attributes = "HttpOnly; SameSite=Strict";
  const ofHost = `${attributes}; Path=/; Secure`;
  // The pages themselves need none.
  const ofPlain = `${attributes}; Path=/api`;
  return {
    read(headers) {
      const cookies = headers.get("cookie");
      if (cookies === null || cookies.length > COOKIES_LENGTH_MAX) return [];
      const named = (name: string): string[] =>
        cookies.split(";").flatMap((cookie) => {
          const [found, value = ""] = cookie.trim().split("=", 2);
          return found === name && value !== "" ? [value] : [];
        });
      const safe = named(host);
      return safe.length > 0 || isHttps() ? safe : named(plain);
    },
    set(token, { isSecure }) {
      const name = isSecure ? host : plain;
      return `${name}=${token}; ${isSecure ? ofHost : ofPlain}; Max-Age=${SESSION_TTL_MS / 1000}`;
    },
    remove: () => [`${host}=; ${ofHost}; Max-Age=0`, `${plain}=; ${ofPlain}; Max-Age=0`],
  };
}
