import type { TestPlatform } from "../../support/index.ts";

/** Answer of a page. */
export interface Shown {
  status: number;
  headers: Headers;
  text: string;
  /** The path and query that it was answered at, once redirects were followed. */
  path: string;
  /** Target of the last redirect, if that is another origin. */
  left: string | null;
}

const REDIRECTS_MAX = 8;

/** A browser without JavaScript: it keeps cookies by their paths, follows redirects of its own origin, and sends forms. */
export class PageVisitor {
  readonly cookies = new Map<string, { value: string; path: string }>();
  readonly #platform: Pick<TestPlatform, "url">;
  readonly #headers: Record<string, string>;

  constructor(platform: Pick<TestPlatform, "url">, headers: Record<string, string> = {}) {
    this.#platform = platform;
    this.#headers = headers;
  }

  open(path: string, headers: Record<string, string> = {}): Promise<Shown> {
    return this.#visit(path, { headers: { "sec-fetch-site": "none", ...headers } });
  }

  send(path: string, fields: Record<string, string>, headers: Record<string, string> = {}): Promise<Shown> {
    return this.#visit(path, {
      method: "POST",
      headers: { "sec-fetch-site": "same-origin", origin: "null", ...headers },
      body: new URLSearchParams(fields),
    });
  }

  /** Whether it has a session below the path of the pages. */
  get isSignedIn(): boolean {
    return [...this.cookies.keys()].some((name) => name.includes("platform_session"));
  }

  cookieHeader(path: string): string {
    return [...this.cookies]
      .filter(([, cookie]) => path.startsWith(cookie.path))
      .map(([name, { value }]) => `${name}=${value}`)
      .join("; ");
  }

  async #visit(first: string, init: RequestInit & { headers: Record<string, string> }): Promise<Shown> {
    let [path, request] = [first, init];
    for (let count = 0; count < REDIRECTS_MAX; count++) {
      const headers = { ...this.#headers, ...request.headers, cookie: this.cookieHeader(path) };
      const answer = await fetch(this.#platform.url + path, { ...request, headers, redirect: "manual" });
      for (const cookie of answer.headers.getSetCookie()) this.#keep(cookie);
      const location = answer.headers.get("location");
      const text = await answer.text();
      const { status } = answer;
      if (location === null) return { status, headers: answer.headers, text, path, left: null };
      const target = new URL(location, this.#platform.url);
      if (target.origin !== this.#platform.url)
        return { status, headers: answer.headers, text, path, left: target.href };
      path = target.pathname + target.search;
      request = { headers: { "sec-fetch-site": "same-origin" } };
    }
    throw new Error(`too many redirects from ${first}`);
  }

  #keep(text: string): void {
    const [pair = "", ...attributes] = text.split("; ");
    const [name = "", value = ""] = pair.split("=", 2);
    const path = attributes.find((one) => one.startsWith("Path="))?.slice(5) ?? "/";
    if (attributes.includes("Max-Age=0")) this.cookies.delete(name);
    else this.cookies.set(name, { value, path });
  }
}

/** The text of what has `role=alert` and is shown; null: nothing. */
export function alertOf({ text }: Shown): string | null {
  return /<p role="alert" id="fault">([^<]*)<\/p>/.exec(text)?.[1]?.replaceAll("&#39;", "'") ?? null;
}

export const noticeOf = ({ text }: Shown): string | null => /<p role="status">([^<]*)<\/p>/.exec(text)?.[1] ?? null;

/** A pair of PKCE. */
export function pkce(verifier = "v".repeat(43)): { verifier: string; challenge: string } {
  return { verifier, challenge: new Bun.CryptoHasher("sha256").update(verifier).digest("base64url") };
}
