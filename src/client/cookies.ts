import { bytesOf, encoded } from "./base64url.ts";
import { listen } from "./listeners.ts";
import { pause, systemRuntime } from "./runtime.ts";
import type { Store } from "./store.ts";

/** Limit of one cookie's value; browsers take 4,096 characters including name and attributes. Longer values are split. */
const COOKIE_VALUE_MAX_CHARACTERS = 3_600;
/** Limit of the wait for a cookie that another tab reports as set; the total is at most about twice this. */
const COOKIE_WAIT_MAX_MS = 5_000;

export interface CookieOptions {
  /** Whether cookies need https. Default: true on a server, the protocol of the page in a browser. */
  secure?: boolean;
  /** Path of the cookies; `/` by default. */
  path?: string;
  /** Lifetime in seconds; 28 days by default, the lifetime of an unused session. */
  maxAge?: number;
  /** Domain whose subdomains share the cookies. Default: the host alone. */
  domain?: string;
}

export interface CookieStore extends Store {
  /** Returns the values of `Set-Cookie` for changes since the request; empty without changes. */
  setCookies(): string[];
}

const DAY_SECONDS = 86_400;

function decoded(text: string): string | null {
  try {
    return new TextDecoder().decode(bytesOf(text));
  } catch {
    return null;
  }
}

const parsed = (header: string): Map<string, string> =>
  new Map(
    header.split(/;\s*/).flatMap((pair) => {
      const at = pair.indexOf("=");
      return at < 1 ? [] : [[pair.slice(0, at), pair.slice(at + 1)] as const];
    }),
  );

/**
 * Creates a store that keeps a session in cookies, shared by a server that renders pages and its pages. On the server:
 * `cookieStore(header)` with the `Cookie` header of the request, one store and one client per request; `setCookies` returns what
 * the response must set. In a page: `cookieStore()`. The cookies hold the session of one server; pages of their host can read
 * them, like `localStorage`.
 */
export function cookieStore(header?: string | null, options: CookieOptions = {}): CookieStore {
  const isPage = header === undefined && typeof document !== "undefined";
  const { secure = !isPage || location.protocol === "https:", path = "/", maxAge = 28 * DAY_SECONDS, domain } = options;
  const attributes = `; Path=${path}; SameSite=Lax${secure ? "; Secure" : ""}${domain === undefined ? "" : `; Domain=${domain}`}`;
  const given = parsed(header ?? "");
  const changed = new Map<string, string>();
  const jar = () => (isPage ? parsed(document.cookie) : given);
  const channel = isPage && "BroadcastChannel" in globalThis ? new BroadcastChannel("platform.cookies") : null;

  const put = (name: string, value: string) => {
    const cookie = `${name}=${value}${attributes}; Max-Age=${value === "" ? 0 : maxAge}`;
    if (isPage) {
      // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API is asynchronous, and missing on plain http
      document.cookie = cookie;
      return;
    }
    changed.set(name, cookie);
    if (value === "") given.delete(name);
    else given.set(name, value);
  };
  /** The host in the key is left out: server and pages may reach the same API under different addresses. */
  const nameOf = (key: string, part: number) => `${key.split("@")[0]}${part === 0 ? "" : `.${part}`}`;
  const write = (key: string, value: string) => {
    const cookies = jar();
    for (let part = 0; part * COOKIE_VALUE_MAX_CHARACTERS < value.length || cookies.has(nameOf(key, part)); part++) {
      put(nameOf(key, part), value.substr(part * COOKIE_VALUE_MAX_CHARACTERS, COOKIE_VALUE_MAX_CHARACTERS));
    }
  };
  const change = (key: string, value: string | null) => {
    // Cookies cannot hold every character of JSON, and percent-encoding triples its quotes.
    write(key, value === null ? "" : encoded(new TextEncoder().encode(value)));
    channel?.postMessage({ key, value } satisfies Change);
  };

  const store: CookieStore = {
    get(key) {
      const cookies = jar();
      let text = "";
      for (let part = 0; cookies.has(nameOf(key, part)); part++) text += cookies.get(nameOf(key, part));
      return text === "" ? null : decoded(text);
    },
    set: change,
    remove: (key) => change(key, null),
    setCookies: () => [...changed.values()],
  };
  if (!isPage) return { ...store, lock: (_, work) => work() };
  return channel === null ? store : { ...store, subscribe: (listener) => heard(channel, store, listener) };
}

interface Change {
  key: string;
  value: string | null;
}

const heard = (channel: BroadcastChannel, store: Store, listener: (key: string) => void): (() => void) =>
  listen(channel, "message", async ({ data: { key, value } }: MessageEvent<Change>) => {
    // A tab may be notified of another tab's cookie before it can read it.
    for (let waitMs = 1; store.get(key) !== value && waitMs < COOKIE_WAIT_MAX_MS; waitMs *= 2) {
      await pause(systemRuntime, waitMs);
    }
    listener(key);
  });
