import type { Millis } from "../../../../kernel/clock.ts";
import { isJsonObject, type JsonObject } from "../../../../kernel/json/json.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import { PAGE_COOKIES_MAX_CHARACTERS } from "../limits.ts";
import type { Sealing } from "../store/sealing.ts";

/** The cookies of the pages: `session` stands for a session, `visit` for what a browser is in the middle of. */
export type CookieKind = "session" | "visit";

/**
 * Sealed cookies. Their names differ between servers, since cookies ignore ports. Over https they begin with `__Host-`, which no
 * other subdomain can set; such a cookie is sent to the whole host, and read below the path of the pages alone.
 */
export class PageCookies {
  readonly #sealing: Sealing;
  readonly #suffix: string;
  /** Path of the pages, as browsers see it. */
  readonly #path: () => string;

  constructor(deps: { sealing: Sealing; path: () => string }) {
    this.#sealing = deps.sealing;
    this.#suffix = deps.sealing.digest("page-cookie", "name").toString("hex").slice(0, 8);
    this.#path = deps.path;
  }

  /** Returns what a cookie holds; null: none, of another server, or too old. */
  read(headers: Headers, kind: CookieKind, { isSecure, now }: { isSecure: boolean; now: Millis }): JsonObject | null {
    const cookies = headers.get("cookie");
    if (cookies === null || cookies.length > PAGE_COOKIES_MAX_CHARACTERS) return null;
    const name = this.#nameOf(kind, isSecure);
    for (const cookie of cookies.split(";")) {
      const [found = "", value = ""] = cookie.trim().split("=", 2);
      if (found !== name) continue;
      const content = this.#opened(kind, value, now);
      if (content !== null) return content;
    }
    return null;
  }

  #opened(kind: CookieKind, value: string, now: Millis): JsonObject | null {
    const text = this.#sealing.unseal(value);
    const sealed: unknown = text === null ? null : JSON.parse(text);
    // Other texts are sealed with the same key.
    if (!isJsonObject(sealed) || sealed["pageCookie"] !== kind) return null;
    const { until, content } = sealed;
    return typeof until === "number" && until > now && isJsonObject(content) ? content : null;
  }

  /** Returns the `Set-Cookie` header that keeps the content until then. */
  set(
    kind: CookieKind,
    content: JsonObject,
    { isSecure, now, until }: { isSecure: boolean; now: Millis; until: Millis },
  ): string {
    const sealed = Buffer.from(this.#sealing.seal(JSON.stringify({ pageCookie: kind, until, content })), "base64");
    const maxAge = Math.ceil((until - now) / SECOND_MS);
    return `${this.#nameOf(kind, isSecure)}=${sealed.toString("base64url")}; ${this.#attributes(isSecure)}; Max-Age=${maxAge}`;
  }

  remove(kind: CookieKind, { isSecure }: { isSecure: boolean }): string {
    return `${this.#nameOf(kind, isSecure)}=; ${this.#attributes(isSecure)}; Max-Age=0`;
  }

  #nameOf(kind: CookieKind, isSecure: boolean): string {
    return `${isSecure ? "__Host-" : ""}platform_${kind}_${this.#suffix}`;
  }

  /** `SameSite=Strict` would withhold them where an application leads here, or a provider back. */
  #attributes(isSecure: boolean): string {
    return `HttpOnly; SameSite=Lax; Path=${isSecure ? "/; Secure" : this.#path()}`;
  }
}
