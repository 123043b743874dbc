import { COOKIES_LENGTH_MAX, SESSION_TTL_MS } from "../limits.ts";

/** The cookie of an administrator's session. Cookies do not tell ports apart, so its name tells servers apart. */
export interface SessionCookie {
  /** The token in these headers; null: none. */
  read(headers: Headers): string | null;
  /** The `Set-Cookie` that keeps a token. */
  set(token: string, options: { isSecure: boolean }): string;
  /** The `Set-Cookie` that removes it. */
  remove(): string;
}

export function createSessionCookie(secret: string): SessionCookie {
  const hash = new Bun.CryptoHasher("sha256").update(`admin cookie ${secret}`).digest("hex");
  const name = `platform_admin_${hash.slice(0, 8)}`;
  // Lax would send it with a link from another site. Path: the pages themselves need none.
  const attributes = "HttpOnly; SameSite=Strict; Path=/api";
  return {
    read(headers) {
      const cookies = headers.get("cookie");
      if (cookies === null || cookies.length > COOKIES_LENGTH_MAX) return null;
      for (const cookie of cookies.split(";")) {
        const [found, value] = cookie.trim().split("=", 2);
        if (found === name && value !== undefined && value !== "") return value;
      }
      return null;
    },
    set: (token, { isSecure }) =>
      `${name}=${token}; ${attributes}; Max-Age=${SESSION_TTL_MS / 1000}${isSecure ? "; Secure" : ""}`,
    remove: () => `${name}=; ${attributes}; Max-Age=0`,
  };
}
